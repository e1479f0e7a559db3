/* add: x + y (dsl/binary.lua:5, templates/c/elementwise.c.in) */
void Q_NAME(qk_add_f32_f32_f32_2d_bcc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 0); /* x is broadcast */
  Q_ASSERT(n0 == 1 || stride[1][0] == 4); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 4); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    const char *row_y = ptr[1] + j * stride[1][1];
    char *row_out = ptr[2] + j * stride[2][1];
    const f32 in_x = *(const f32_u *)row_x;
    Q_IVDEP_SHORT
    for (i64 i = 0; i < n0; i++) {
      const f32 in_y = ((const f32_u *)row_y)[i];
      const f32 t3 = in_x + in_y;
      ((f32_u *)row_out)[i] = q_canon_f32(t3);
    }
  }
}
