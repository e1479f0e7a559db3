static const f32 q_table_tanh_of[32] __attribute__((aligned(64))) = {
  0x1.f4c076p-1f, 0x1.fbd52ep-1f, 0x1.fe7668p-1f, 0x1.ff6f1ep-1f,
  0x1.ffdfacp-1f, 0x1.fffbap-1f, 0x1.ffff68p-1f, 0x1.ffffecp-1f,
  0x1.fffffep-1f, 0.0f, 0.0f, 0.0f,
  0x1.1f831ap-4f, 0x1.5f21bap-4f, 0x1.9e9142p-4f, 0x1.ddd4b8p-4f,
  0x1.1e203cp-3f, 0x1.5c91dep-3f, 0x1.9a62a6p-3f, 0x1.d76598p-3f,
  0x1.18a1f6p-2f, 0x1.52c322p-2f, 0x1.8a8b8ap-2f, 0x1.bfb1dep-2f,
  0x1.050628p-1f, 0x1.31559cp-1f, 0x1.578ab8p-1f, 0x1.77d6a4p-1f,
  0x1.9e5f2p-1f, 0x1.c279dcp-1f, 0x1.d9c6b6p-1f, 0x1.e878b4p-1f,
};
static const f32 q_table_tanh_at[32] __attribute__((aligned(64))) = {
  0x1.200394p+1f, 0x1.60023p+1f, 0x1.9ffd2cp+1f, 0x1.e002cep+1f,
  0x1.2004d2p+2f, 0x1.6005f2p+2f, 0x1.9fef28p+2f, 0x1.e0d5c4p+2f,
  0x1.154246p+3f, 0.0f, 0.0f, 0.0f,
  0x1.1ffc58p-4f, 0x1.5ffee6p-4f, 0x1.9ffde6p-4f, 0x1.e00434p-4f,
  0x1.200278p-3f, 0x1.5ffecep-3f, 0x1.a003bp-3f, 0x1.dfff3p-3f,
  0x1.1ffe3ap-2f, 0x1.600068p-2f, 0x1.a0044cp-2f, 0x1.e00444p-2f,
  0x1.1ffcecp-1f, 0x1.5ffc7cp-1f, 0x1.a00322p-1f, 0x1.dffc92p-1f,
  0x1.20038p+0f, 0x1.6002bp+0f, 0x1.9fff1p+0f, 0x1.e00076p+0f,
};

/* tanh: tanh(x) (dsl/unary.lua:51, dsl/math/tanh.lua, templates/c/elementwise_strips.c.in) */
void Q_NAME(qk_tanh_f32_f32_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 4); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 4); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    i64 first = 0;
#if Q_WIDE_BYTES >= 64
    for (; first + Q_WIDE_32 <= n0; first += Q_WIDE_32) {
      u32 at_10_2[Q_WIDE_32];
      i32 kept_bits[Q_WIDE_32];
      f32 kept_h[Q_WIDE_32];
      f32 kept_b[Q_WIDE_32];
      f32 strip_x[Q_WIDE_32];
      Q_EACH_VECTOR(32) q_take_f32_32(strip_x + q_part, (const f32_u *)row_x + first + q_part);
      Q_IVDEP_WIDE
      for (int l = 0; l < Q_WIDE_32; l++) {
        const f32 in_x = strip_x[l];
        const f32 t2 = q_abs_f32(in_x);
        const i32 t3 = (i32)q_raw_f32(t2);
        const i32 bits = q_min_i32(t3, 1091672474);
        const i32 t7 = q_max_i32(bits, 1031798783);
        const u32 t8 = q_cast_i32_u32(t7);
        const u32 i_2 = q_shrc_u32(t8, 0x15u);
        at_10_2[l] = (u32)i_2;
        kept_bits[l] = bits;
      }
      Q_EACH_VECTOR(32) q_lookup_f32_32_32(kept_h + q_part, q_table_tanh_of, at_10_2 + q_part);
      Q_EACH_VECTOR(32) q_lookup_f32_32_32(kept_b + q_part, q_table_tanh_at, at_10_2 + q_part);
      Q_IVDEP_WIDE
      for (int l = 0; l < Q_WIDE_32; l++) {
        const f32 in_x = strip_x[l];
        const f32 h = kept_h[l];
        const i32 bits = kept_bits[l];
        const f32 b = kept_b[l];
        const m32 t29 = Q_MASK(m32, in_x == in_x);
        const f32 t23 = -(h);
        const f32 t25 = q_fma_f32(t23, h, 1.0f);
        const f32 t13 = q_from_f32((u32)bits);
        const f32 u = t13 - b;
        const f32 z = u * u;
        const f32 t16 = z * u;
        const f32 t19 = q_fma_f32(-0x1.9517e4p-5f, z, 0x1.10d876p-3f);
        const f32 t21 = q_fma_f32(t19, z, -0x1.555542p-2f);
        const f32 t = q_fma_f32(t16, t21, u);
        const f32 t26 = q_fma_f32(h, t, 1.0f);
        const f32 t27 = t25 / t26;
        const f32 y = q_fma_f32(t27, t, h);
        const u32 t30 = (u32)q_raw_f32(y);
        const u32 t31 = (u32)q_raw_f32(in_x);
        const u32 t33 = (u32)(t31 & 0x80000000u);
        const u32 t34 = (u32)(t30 | t33);
        const f32 t35 = q_from_f32((u32)t34);
        const f32 tanh = q_sel_f32(t29, t35, q_from_f32(0x7fc00000u));
        const i64 i = first + l;
        ((f32_u *)row_out)[i] = tanh;
      }
    }
#endif
    for (; first + Q_STRIP_32 <= n0; first += Q_STRIP_32) {
      u32 at_10_2_2[Q_STRIP_32];
      i32 kept_bits_2[Q_STRIP_32];
      f32 kept_h_2[Q_STRIP_32];
      f32 kept_b_2[Q_STRIP_32];
      f32 strip_x[Q_STRIP_32];
      q_take_f32_32(strip_x, (const f32_u *)row_x + first);
      Q_IVDEP_STRIP
      for (int l = 0; l < Q_STRIP_32; l++) {
        const f32 in_x = strip_x[l];
        const f32 t2 = q_abs_f32(in_x);
        const i32 t3 = (i32)q_raw_f32(t2);
        const i32 bits = q_min_i32(t3, 1091672474);
        const i32 t7 = q_max_i32(bits, 1031798783);
        const u32 t8 = q_cast_i32_u32(t7);
        const u32 i_2 = q_shrc_u32(t8, 0x15u);
        at_10_2_2[l] = (u32)i_2;
        kept_bits_2[l] = bits;
      }
      q_lookup_f32_32_32(kept_h_2, q_table_tanh_of, at_10_2_2);
      q_lookup_f32_32_32(kept_b_2, q_table_tanh_at, at_10_2_2);
      Q_IVDEP_STRIP
      for (int l = 0; l < Q_STRIP_32; l++) {
        const f32 in_x = strip_x[l];
        const f32 h = kept_h_2[l];
        const i32 bits = kept_bits_2[l];
        const f32 b = kept_b_2[l];
        const m32 t29 = Q_MASK(m32, in_x == in_x);
        const f32 t23 = -(h);
        const f32 t25 = q_fma_f32(t23, h, 1.0f);
        const f32 t13 = q_from_f32((u32)bits);
        const f32 u = t13 - b;
        const f32 z = u * u;
        const f32 t16 = z * u;
        const f32 t19 = q_fma_f32(-0x1.9517e4p-5f, z, 0x1.10d876p-3f);
        const f32 t21 = q_fma_f32(t19, z, -0x1.555542p-2f);
        const f32 t = q_fma_f32(t16, t21, u);
        const f32 t26 = q_fma_f32(h, t, 1.0f);
        const f32 t27 = t25 / t26;
        const f32 y = q_fma_f32(t27, t, h);
        const u32 t30 = (u32)q_raw_f32(y);
        const u32 t31 = (u32)q_raw_f32(in_x);
        const u32 t33 = (u32)(t31 & 0x80000000u);
        const u32 t34 = (u32)(t30 | t33);
        const f32 t35 = q_from_f32((u32)t34);
        const f32 tanh = q_sel_f32(t29, t35, q_from_f32(0x7fc00000u));
        const i64 i = first + l;
        ((f32_u *)row_out)[i] = tanh;
      }
    }
    for (i64 i = first; i < n0; i++) {
      Q_NOT_VECTORISED;
      const f32 in_x = ((const f32_u *)row_x)[i];
      const m32 t29 = Q_MASK(m32, in_x == in_x);
      const f32 t2 = q_abs_f32(in_x);
      const i32 t3 = (i32)q_raw_f32(t2);
      const i32 bits = q_min_i32(t3, 1091672474);
      const i32 t7 = q_max_i32(bits, 1031798783);
      const u32 t8 = q_cast_i32_u32(t7);
      const u32 i_2 = q_shrc_u32(t8, 0x15u);
      const f32 h = q_table_tanh_of[i_2 & 31];
      const f32 t23 = -(h);
      const f32 t25 = q_fma_f32(t23, h, 1.0f);
      const f32 t13 = q_from_f32((u32)bits);
      const f32 b = q_table_tanh_at[i_2 & 31];
      const f32 u = t13 - b;
      const f32 z = u * u;
      const f32 t16 = z * u;
      const f32 t19 = q_fma_f32(-0x1.9517e4p-5f, z, 0x1.10d876p-3f);
      const f32 t21 = q_fma_f32(t19, z, -0x1.555542p-2f);
      const f32 t = q_fma_f32(t16, t21, u);
      const f32 t26 = q_fma_f32(h, t, 1.0f);
      const f32 t27 = t25 / t26;
      const f32 y = q_fma_f32(t27, t, h);
      const u32 t30 = (u32)q_raw_f32(y);
      const u32 t31 = (u32)q_raw_f32(in_x);
      const u32 t33 = (u32)(t31 & 0x80000000u);
      const u32 t34 = (u32)(t30 | t33);
      const f32 t35 = q_from_f32((u32)t34);
      const f32 tanh = q_sel_f32(t29, t35, q_from_f32(0x7fc00000u));
      ((f32_u *)row_out)[i] = tanh;
    }
  }
}
