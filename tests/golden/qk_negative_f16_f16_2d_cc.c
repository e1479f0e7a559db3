/* negative: -x (dsl/unary.lua:5, templates/c/elementwise.c.in) */
void Q_NAME(qk_negative_f16_f16_2d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 2); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 2); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    char *row_out = ptr[1] + j * stride[1][1];
    Q_IVDEP
    for (i64 i = 0; i < n0; i++) {
      const i16 in_x = (i16)((const f16_s_u *)row_x)[i];
      const i16 t5 = (i16)(in_x ^ -32768);
      const i16 t7 = (i16)(t5 & (i16)(32767 ^ q_zero));
      const m16 t9 = Q_MASK(m16, t7 > 31744);
      const i16 t11 = q_sel_i16(t9, 32256, t5);
      ((f16_s_u *)row_out)[i] = (f16_s)t11;
    }
  }
}
