/* fma: fma(x, y, z) (dsl/binary.lua:117, templates/c/elementwise_pairs.c.in) */
void Q_NAME(qk_fma_bf16_bf16_bf16_bf16_2d_cbcc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 2); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 0); /* y is broadcast */
  Q_ASSERT(n0 == 1 || stride[2][0] == 2); /* z is contiguous */
  Q_ASSERT(n0 == 1 || stride[3][0] == 2); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    const char *row_y = ptr[1] + j * stride[1][1];
    const char *row_z = ptr[2] + j * stride[2][1];
    char *row_out = ptr[3] + j * stride[3][1];
    const f32 in_y = q_bf16_f32(*(const bf16_s_u *)row_y);
    Q_IVDEP_SHORT
    for (i64 i = 0; i < n0 / 2; i++) {
      const u32 pair_x = ((const u32_u *)row_x)[i];
      const u32 pair_z = ((const u32_u *)row_z)[i];
      u32 low_0, high_0;
      {
        const f32 in_x = q_low_bf16(pair_x);
        const f32 in_z = q_low_bf16(pair_z);
        const f32 t4 = q_fma_f32(in_x, in_y, in_z);
        low_0 = q_cast_half_bf16(t4);
      }
      {
        const f32 in_x = q_high_bf16(pair_x);
        const f32 in_z = q_high_bf16(pair_z);
        const f32 t4 = q_fma_f32(in_x, in_y, in_z);
        high_0 = q_cast_half_bf16(t4);
      }
      ((u32_u *)row_out)[i] = q_join_bf16(low_0, high_0);
    }
    for (i64 i = n0 & ~(i64)1; i < n0; i++) {
      Q_NOT_VECTORISED;
      const f32 in_x = q_bf16_f32(((const bf16_s_u *)row_x)[i]);
      const f32 in_z = q_bf16_f32(((const bf16_s_u *)row_z)[i]);
      const f32 t4 = q_fma_f32(in_x, in_y, in_z);
      ((bf16_s_u *)row_out)[i] = q_cast_f32_bf16(t4);
    }
  }
}
