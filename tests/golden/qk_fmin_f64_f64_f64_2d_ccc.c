/* fmin: floating: smaller_number(x, y); integer: minimum(x, y) (dsl/binary.lua:62, dsl/math/exact.lua, */
/* templates/c/elementwise.c.in) */
void Q_NAME(qk_fmin_f64_f64_f64_2d_ccc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 8); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 8); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 8); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    const char *row_y = ptr[1] + j * stride[1][1];
    char *row_out = ptr[2] + j * stride[2][1];
    Q_IVDEP
    for (i64 i = 0; i < n0; i++) {
      const f64 in_x = ((const f64_u *)row_x)[i];
      const f64 in_y = ((const f64_u *)row_y)[i];
      const m64 t11 = Q_MASK(m64, in_y == in_y);
      const m64 t3 = Q_MASK(m64, in_x == in_x);
      const f64 a = q_sel_f64(t3, in_x, q_from_f64(0x7ff8000000000000ULL));
      const f64 t6 = a - in_y;
      const i64 t7 = (i64)q_raw_f64(t6);
      const m64 t9 = Q_MASK(m64, t7 < 0LL);
      const f64 number = q_sel_f64(t9, a, in_y);
      const f64 chosen_number = q_sel_f64(t11, number, a);
      ((f64_u *)row_out)[i] = chosen_number;
    }
  }
}
