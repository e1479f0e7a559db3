/* add: x + y (dsl/binary.lua:5, templates/c/elementwise.c.in) */
void Q_NAME(qk_add_f16_f16_f16_3d_ccs)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0 && n[2] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 2); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 2); /* y is contiguous */
  const i64 step_out = stride[2][0];
  for (i64 j = 0; j < n[1] * n[2]; j++) {
    const i64 j1 = j % n[1], j2 = j / n[1];
    const char *row_x = ptr[0] + j1 * stride[0][1] + j2 * stride[3 + 0][0];
    const char *row_y = ptr[1] + j1 * stride[1][1] + j2 * stride[3 + 1][0];
    char *row_out = ptr[2] + j1 * stride[2][1] + j2 * stride[3 + 2][0];
    Q_IVDEP_F16
    for (i64 i = 0; i < n0; i++) {
      const f32 in_x = q_f16_f32(((const f16_s_u *)row_x)[i], q_zero);
      const f32 in_y = q_f16_f32(((const f16_s_u *)row_y)[i], q_zero);
      const f32 t3 = in_x + in_y;
      *(f16_s_u *)(row_out + i * step_out) = q_cast_f32_f16(t3);
    }
  }
}
