/* clip: floating: clamped(x, min, max); integer: minimum(maximum(x, min), max) (dsl/binary.lua:125, */
/* templates/c/elementwise.c.in) */
void Q_NAME(qk_clip_bf16_bf16_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i16 p_min = (i16)q_cast_f32_bf16(*(const f32_u *)((const char *)params + 0));
  const i16 p_max = (i16)q_cast_f32_bf16(*(const f32_u *)((const char *)params + 8));
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 2); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 2); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    Q_IVDEP
    for (i64 i = 0; i < n0; i++) {
      const i16 in_x = (i16)((const bf16_s_u *)row_x)[i];
      const i16 t10 = (i16)(p_min & 32767);
      const i16 t15 = (i16)(p_max & 32767);
      const i16 t16 = q_max_i16(t10, t15);
      const i16 t20 = (i16)(in_x & 32767);
      const i16 t21 = q_max_i16(t16, t20);
      const m16 t28 = Q_MASK(m16, t21 > 32640);
      const i16 t17 = q_shrc_i16(p_max, 15);
      const i16 t18 = (i16)(t17 & 32767);
      const i16 t19 = (i16)(p_max ^ t18);
      const i16 t12 = q_shrc_i16(p_min, 15);
      const i16 t13 = (i16)(t12 & 32767);
      const i16 t14 = (i16)(p_min ^ t13);
      const i16 t22 = q_shrc_i16(in_x, 15);
      const i16 t23 = (i16)(t22 & 32767);
      const i16 t24 = (i16)(in_x ^ t23);
      const i16 t25 = q_max_i16(t14, t24);
      const i16 t26 = q_min_i16(t19, t25);
      const i16 t29 = q_shrc_i16(t26, 15);
      const i16 t30 = (i16)(t29 & 32767);
      const i16 t31 = (i16)(t26 ^ t30);
      const i16 t33 = q_sel_i16(t28, 32704, t31);
      ((bf16_s_u *)row_out)[i] = (bf16_s)t33;
    }
  }
}
