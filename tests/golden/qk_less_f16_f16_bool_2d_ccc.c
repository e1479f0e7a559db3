/* less: x < y (dsl/compare.lua:5, templates/c/elementwise_strips.c.in) */
void Q_NAME(qk_less_f16_f16_bool_2d_ccc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 2); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 2); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 1); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    const char *row_y = ptr[1] + j * stride[1][1];
    char *row_out = ptr[2] + j * stride[2][1];
    i64 first = 0;
    for (; first + Q_STRIP_32 <= n0; first += Q_STRIP_32) {
      m32 give_out[Q_STRIP_32];
      f32 strip_x[Q_STRIP_32];
      f32 strip_y[Q_STRIP_32];
      q_widen_32(strip_x, (const f16_s_u *)row_x + first, q_zero);
      q_widen_32(strip_y, (const f16_s_u *)row_y + first, q_zero);
      Q_IVDEP_STRIP
      for (int l = 0; l < Q_STRIP_32; l++) {
        const f32 in_y = strip_y[l];
        const f32 in_x = strip_x[l];
        const m32 t3 = Q_MASK(m32, in_x < in_y);
        give_out[l] = t3;
      }
      q_give_bool_32((bool_s_u *)row_out + first, give_out);
    }
    for (i64 i = first; i < n0; i++) {
      Q_NOT_VECTORISED;
      const f32 in_x = q_f16_f32(((const f16_s_u *)row_x)[i], q_zero);
      const f32 in_y = q_f16_f32(((const f16_s_u *)row_y)[i], q_zero);
      const m32 t3 = Q_MASK(m32, in_x < in_y);
      ((bool_s_u *)row_out)[i] = (bool_s)((m8)t3 & 1);
    }
  }
}
