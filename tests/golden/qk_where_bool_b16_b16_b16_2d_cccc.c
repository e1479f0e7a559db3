/* where: condition ? x : y (dsl/move.lua:6, templates/c/elementwise.c.in) */
void Q_NAME(qk_where_bool_b16_b16_b16_2d_cccc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 1); /* condition is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 2); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 2); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[3][0] == 2); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_condition = ptr[0] + j * stride[0][1];
    const char *row_x = ptr[1] + j * stride[1][1];
    const char *row_y = ptr[2] + j * stride[2][1];
    char *row_out = ptr[3] + j * stride[3][1];
    Q_IVDEP_SHORT
    for (i64 i = 0; i < n0; i++) {
      const m8 in_condition = Q_MASK(m8, ((const bool_s_u *)row_condition)[i] != 0);
      const u16 in_x = ((const u16_u *)row_x)[i];
      const u16 in_y = ((const u16_u *)row_y)[i];
      const u16 t4 = q_sel_u16((m16)in_condition, in_x, in_y);
      ((u16_u *)row_out)[i] = t4;
    }
  }
}
