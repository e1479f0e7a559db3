/* full: value (dsl/move.lua:33, templates/c/elementwise.c.in) */
void Q_NAME(qk_full_b32_2d_c)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const u32 p_value = *(const u32_u *)((const char *)params + 0);
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 4); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    char *row_out = ptr[0] + j * stride[0][1];
    Q_IVDEP_SHORT
    for (i64 i = 0; i < n0; i++) {
      ((u32_u *)row_out)[i] = p_value;
    }
  }
}
