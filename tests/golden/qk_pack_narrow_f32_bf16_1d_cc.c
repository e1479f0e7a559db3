/* what a kernel has computed, to the dtype it is stored in (templates/c/elementwise.c.in) */
void Q_NAME(qk_pack_narrow_f32_bf16_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 4); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 2); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    Q_IVDEP
    for (i64 i = 0; i < n0; i++) {
      ((bf16_s_u *)row_out)[i] = (bf16_s)q_f32_bf16(((const f32_u *)row_x)[i]);
    }
  }
}
