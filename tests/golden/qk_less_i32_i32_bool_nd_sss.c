/* less: x < y (dsl/compare.lua:5, templates/c/elementwise.c.in) */
void Q_NAME(qk_less_i32_i32_bool_nd_sss)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  const i64 step_x = stride[0][0];
  const i64 step_y = stride[1][0];
  const i64 step_out = stride[2][0];
  i64 rows = 1;
  for (int dim = 1; n[dim] != 0; dim++) rows *= n[dim];
  for (i64 j = 0; j < rows; j++) {
    const char *row_x = ptr[0];
    const char *row_y = ptr[1];
    char *row_out = ptr[2];
    i64 rest = j;
    for (int dim = 1; n[dim] != 0; dim++) {
      const i64 index = rest % n[dim];
      rest /= n[dim];
      row_x += index * stride[(dim / 2) * 3 + 0][dim % 2];
      row_y += index * stride[(dim / 2) * 3 + 1][dim % 2];
      row_out += index * stride[(dim / 2) * 3 + 2][dim % 2];
    }
    Q_IVDEP
    for (i64 i = 0; i < n0; i++) {
      const i32 in_x = *(const i32_u *)(row_x + i * step_x);
      const i32 in_y = *(const i32_u *)(row_y + i * step_y);
      const m32 t3 = Q_MASK(m32, in_x < in_y);
      *(bool_s_u *)(row_out + i * step_out) = (bool_s)((m8)t3 & 1);
    }
  }
}
