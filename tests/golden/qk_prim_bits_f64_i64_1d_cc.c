/* a step of an expression: bits (templates/c/elementwise.c.in) */
void Q_NAME(qk_prim_bits_f64_i64_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 8); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 8); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    Q_IVDEP_SHORT
    for (i64 i = 0; i < n0; i++) {
      const f64 in_x = ((const f64_u *)row_x)[i];
      const i64 t2 = (i64)q_bits_f64(in_x);
      ((i64_u *)row_out)[i] = t2;
    }
  }
}
