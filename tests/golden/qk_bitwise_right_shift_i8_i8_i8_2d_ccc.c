/* bitwise_right_shift: x >> y (dsl/bitwise.lua:40, templates/c/elementwise_shifts.c.in) */
void Q_NAME(qk_bitwise_right_shift_i8_i8_i8_2d_ccc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 1); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 1); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 1); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    const char *row_y = ptr[1] + j * stride[1][1];
    char *row_out = ptr[2] + j * stride[2][1];
    i64 first = 0;
#if Q_SHIFTS_VECTORS
    for (const i64 whole = 32 / (i64)sizeof(i8); first + whole <= n0; first += whole)
      q_give_shr_i8((i8_u *)row_out + first, (const i8_u *)row_x + first, (const i8_u *)row_y + first);
#endif
    Q_IVDEP_REST_OF_SHIFTS
    for (i64 i = first; i < n0; i++) {
      Q_REST_OF_SHIFTS;
      const i8 in_x = ((const i8_u *)row_x)[i];
      const i8 in_y = ((const i8_u *)row_y)[i];
      const i8 t3 = q_shr_i8(in_x, in_y);
      ((i8_u *)row_out)[i] = t3;
    }
  }
}
