static const f32 q_table_log_hi[16] __attribute__((aligned(64))) = {
  -0x1.fb9p-3f, -0x1.9528p-3f, -0x1.5ffp-3f, -0x1.2958p-3f,
  -0x1.6f1p-4f, -0x1.f0ap-5f, -0x1.f84p-6f, 0.0f,
  0x1.086p-4f, 0x1.da7p-4f, 0x1.5bf8p-3f, 0x1.d1p-3f,
  0x1.1178p-2f, 0x1.522cp-2f, 0x1.7fbp-2f, 0x1.973cp-2f,
};
static const f32 q_table_log_c[16] __attribute__((aligned(64))) = {
  1.28125f, 1.21875f, 1.1875f, 1.15625f,
  1.09375f, 1.0625f, 1.03125f, 1.0f,
  0.9375f, 0.890625f, 0.84375f, 0.796875f,
  0.765625f, 0.71875f, 0.6875f, 0.671875f,
};
static const f32 q_table_log_lo[16] __attribute__((aligned(64))) = {
  -0x1.86d5e4p-19f, 0x1.2b185ep-18f, -0x1.83853cp-18f, 0x1.683fp-18f,
  0x1.6ba8d4p-19f, -0x1.86008cp-20f, 0x1.64f188p-18f, 0.0f,
  -0x1.9d2988p-18f, 0x1.3b1c22p-19f, -0x1.fca55ep-18f, 0x1.bf932ap-18f,
  0x1.d044fcp-19f, -0x1.1f8c76p-18f, -0x1.7109fap-20f, -0x1.cbcecap-18f,
};

/* log: log(x) (dsl/unary.lua:40, dsl/math/log.lua, templates/c/elementwise_rare_strips.c.in) */
void Q_NAME(qk_log_f32_f32_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 4); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 4); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    const int is_apart = row_x != row_out;
    for (i64 start = 0; start < n0; start += 256) {
      const i64 m = n0 - start < 256 ? n0 - start : 256;
      u32 most_0 = 0;
      f32 block_0[256];
      f32_u *const to_0 = is_apart ? (f32_u *)row_out + start : block_0;
      {
        i64 k = 0;
        u32 most_0_of[Q_WIDE_32] = {0};
#if Q_WIDE_BYTES >= 64
        for (; k + Q_WIDE_32 <= m; k += Q_WIDE_32) {
          const i64 first = start + k;
          (void)first;
          u32 at_12_2[Q_WIDE_32];
          u32 kept_t2[Q_WIDE_32];
          u32 kept_log_bits_f32[Q_WIDE_32];
          f32 kept_t16[Q_WIDE_32];
          f32 kept_t13[Q_WIDE_32];
          f32 kept_t19[Q_WIDE_32];
          f32 strip_x[Q_WIDE_32];
          Q_EACH_VECTOR(32) q_take_f32_32(strip_x + q_part, (const f32_u *)row_x + first + q_part);
          Q_IVDEP_WIDE
          for (int l = 0; l < Q_WIDE_32; l++) {
            const f32 in_x = strip_x[l];
            const u32 t2 = (u32)q_raw_f32(in_x);
            const u32 log_bits_f32 = q_sub_u32(t2, 0x3f440000u);
            const u32 t12 = q_shrc_u32(log_bits_f32, 0x13u);
            at_12_2[l] = (u32)t12;
            kept_t2[l] = t2;
            kept_log_bits_f32[l] = log_bits_f32;
          }
          Q_EACH_VECTOR(32) q_lookup_f32_16_32(kept_t16 + q_part, q_table_log_hi, at_12_2 + q_part);
          Q_EACH_VECTOR(32) q_lookup_f32_16_32(kept_t13 + q_part, q_table_log_c, at_12_2 + q_part);
          Q_EACH_VECTOR(32) q_lookup_f32_16_32(kept_t19 + q_part, q_table_log_lo, at_12_2 + q_part);
          Q_IVDEP_WIDE
          for (int l = 0; l < Q_WIDE_32; l++) {
            const u32 log_bits_f32 = kept_log_bits_f32[l];
            const f32 t16 = kept_t16[l];
            const u32 t2 = kept_t2[l];
            const f32 t13 = kept_t13[l];
            const f32 t19 = kept_t19[l];
            const u32 t6 = (u32)(log_bits_f32 & 0xff800000u);
            const i32 t7 = q_cast_u32_i32(t6);
            const f32 log_exponent = q_cast_i32_f32(t7);
            const f32 k_2 = q_fma_f32(log_exponent, 0x1.62e4p-24f, t16);
            const u32 t9 = q_sub_u32(t2, t6);
            const f32 log_mantissa = q_from_f32((u32)t9);
            const f32 r = q_fma_f32(log_mantissa, t13, -1.0f);
            const f32 u = k_2 + r;
            const f32 t32 = r * r;
            const f32 t27 = q_fma_f32(r, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
            const f32 t29 = q_fma_f32(r, t27, 0x1.55555p-2f);
            const f32 q = q_fma_f32(r, t29, -0x1.fffffcp-2f);
            const f32 k_lo = q_fma_f32(log_exponent, 0x1.7f7d1cp-43f, t19);
            const f32 t23 = k_2 - u;
            const f32 ul = t23 + r;
            const f32 t33 = k_lo + ul;
            const f32 t34 = q_fma_f32(t32, q, t33);
            const f32 y = u + t34;
            const u32 t37 = q_sub_u32(t2, 0x800000u);
            most_0_of[l] = q_most_u32(most_0_of[l], t37, 0x7effffffu);
            to_0[k + l] = y;
          }
        }
#endif
        for (; k + Q_STRIP_32 <= m; k += Q_STRIP_32) {
          const i64 first = start + k;
          (void)first;
          u32 at_12_2_2[Q_STRIP_32];
          u32 kept_t2_2[Q_STRIP_32];
          u32 kept_log_bits_f32_2[Q_STRIP_32];
          f32 kept_t16_2[Q_STRIP_32];
          f32 kept_t13_2[Q_STRIP_32];
          f32 kept_t19_2[Q_STRIP_32];
          f32 strip_x[Q_STRIP_32];
          q_take_f32_32(strip_x, (const f32_u *)row_x + first);
          Q_IVDEP_STRIP
          for (int l = 0; l < Q_STRIP_32; l++) {
            const f32 in_x = strip_x[l];
            const u32 t2 = (u32)q_raw_f32(in_x);
            const u32 log_bits_f32 = q_sub_u32(t2, 0x3f440000u);
            const u32 t12 = q_shrc_u32(log_bits_f32, 0x13u);
            at_12_2_2[l] = (u32)t12;
            kept_t2_2[l] = t2;
            kept_log_bits_f32_2[l] = log_bits_f32;
          }
          q_lookup_f32_16_32(kept_t16_2, q_table_log_hi, at_12_2_2);
          q_lookup_f32_16_32(kept_t13_2, q_table_log_c, at_12_2_2);
          q_lookup_f32_16_32(kept_t19_2, q_table_log_lo, at_12_2_2);
          Q_IVDEP_STRIP
          for (int l = 0; l < Q_STRIP_32; l++) {
            const u32 log_bits_f32 = kept_log_bits_f32_2[l];
            const f32 t16 = kept_t16_2[l];
            const u32 t2 = kept_t2_2[l];
            const f32 t13 = kept_t13_2[l];
            const f32 t19 = kept_t19_2[l];
            const u32 t6 = (u32)(log_bits_f32 & 0xff800000u);
            const i32 t7 = q_cast_u32_i32(t6);
            const f32 log_exponent = q_cast_i32_f32(t7);
            const f32 k_2 = q_fma_f32(log_exponent, 0x1.62e4p-24f, t16);
            const u32 t9 = q_sub_u32(t2, t6);
            const f32 log_mantissa = q_from_f32((u32)t9);
            const f32 r = q_fma_f32(log_mantissa, t13, -1.0f);
            const f32 u = k_2 + r;
            const f32 t32 = r * r;
            const f32 t27 = q_fma_f32(r, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
            const f32 t29 = q_fma_f32(r, t27, 0x1.55555p-2f);
            const f32 q = q_fma_f32(r, t29, -0x1.fffffcp-2f);
            const f32 k_lo = q_fma_f32(log_exponent, 0x1.7f7d1cp-43f, t19);
            const f32 t23 = k_2 - u;
            const f32 ul = t23 + r;
            const f32 t33 = k_lo + ul;
            const f32 t34 = q_fma_f32(t32, q, t33);
            const f32 y = u + t34;
            const u32 t37 = q_sub_u32(t2, 0x800000u);
            most_0_of[l] = q_most_u32(most_0_of[l], t37, 0x7effffffu);
            to_0[k + l] = y;
          }
        }
        for (int l = 0; l < Q_WIDE_32; l++) most_0 = q_more_u32(most_0, most_0_of[l]);
        for (; k < m; k++) {
          Q_NOT_VECTORISED;
          const i64 i = start + k;
          (void)i;
          const f32 in_x = ((const f32_u *)row_x)[i];
          const u32 t2 = (u32)q_raw_f32(in_x);
          const u32 log_bits_f32 = q_sub_u32(t2, 0x3f440000u);
          const u32 t6 = (u32)(log_bits_f32 & 0xff800000u);
          const i32 t7 = q_cast_u32_i32(t6);
          const f32 log_exponent = q_cast_i32_f32(t7);
          const u32 t12 = q_shrc_u32(log_bits_f32, 0x13u);
          const f32 t16 = q_table_log_hi[t12 & 15];
          const f32 k_2 = q_fma_f32(log_exponent, 0x1.62e4p-24f, t16);
          const u32 t9 = q_sub_u32(t2, t6);
          const f32 log_mantissa = q_from_f32((u32)t9);
          const f32 t13 = q_table_log_c[t12 & 15];
          const f32 r = q_fma_f32(log_mantissa, t13, -1.0f);
          const f32 u = k_2 + r;
          const f32 t32 = r * r;
          const f32 t27 = q_fma_f32(r, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
          const f32 t29 = q_fma_f32(r, t27, 0x1.55555p-2f);
          const f32 q = q_fma_f32(r, t29, -0x1.fffffcp-2f);
          const f32 t19 = q_table_log_lo[t12 & 15];
          const f32 k_lo = q_fma_f32(log_exponent, 0x1.7f7d1cp-43f, t19);
          const f32 t23 = k_2 - u;
          const f32 ul = t23 + r;
          const f32 t33 = k_lo + ul;
          const f32 t34 = q_fma_f32(t32, q, t33);
          const f32 y = u + t34;
          const u32 t37 = q_sub_u32(t2, 0x800000u);
          most_0 = q_most_u32(most_0, t37, 0x7effffffu);
          to_0[k] = y;
        }
      }
      if (q_is_past_u32(most_0, 0x7effffffu)) {
        Q_IVDEP
        for (i64 k = 0; k < m; k++) {
          const i64 i = start + k;
          (void)i;
          const f32 in_x = ((const f32_u *)row_x)[i];
          const u32 t2 = (u32)q_raw_f32(in_x);
          const u32 t37 = q_sub_u32(t2, 0x800000u);
          const m32 log_beyond = Q_MASK(m32, t37 >= 0x7f000000u);
          const m32 t72 = Q_MASK(m32, in_x > 0.0f);
          const m32 t69 = Q_MASK(m32, in_x < q_from_f32(0x7f800000u));
          const f32 n_2 = in_x * 0x1p+23f;
          const u32 t42 = (u32)q_raw_f32(n_2);
          const u32 log_bits_f32_2 = q_sub_u32(t42, 0x3f440000u);
          const u32 t44 = (u32)(log_bits_f32_2 & 0xff800000u);
          const i32 t45 = q_cast_u32_i32(t44);
          const f32 log_exponent_2 = q_cast_i32_f32(t45);
          const f32 t48 = log_exponent_2 - 0x1.7p+27f;
          const u32 t51 = q_shrc_u32(log_bits_f32_2, 0x13u);
          const f32 t54 = q_table_log_hi[t51 & 15];
          const f32 k_3 = q_fma_f32(t48, 0x1.62e4p-24f, t54);
          const u32 t49 = q_sub_u32(t42, t44);
          const f32 log_mantissa_2 = q_from_f32((u32)t49);
          const f32 t52 = q_table_log_c[t51 & 15];
          const f32 r_2 = q_fma_f32(log_mantissa_2, t52, -1.0f);
          const f32 u_2 = k_3 + r_2;
          const f32 t64 = r_2 * r_2;
          const f32 t61 = q_fma_f32(r_2, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
          const f32 t62 = q_fma_f32(r_2, t61, 0x1.55555p-2f);
          const f32 q_2 = q_fma_f32(r_2, t62, -0x1.fffffcp-2f);
          const f32 t56 = q_table_log_lo[t51 & 15];
          const f32 k_lo_2 = q_fma_f32(t48, 0x1.7f7d1cp-43f, t56);
          const f32 t59 = k_3 - u_2;
          const f32 ul_2 = t59 + r_2;
          const f32 t65 = k_lo_2 + ul_2;
          const f32 t66 = q_fma_f32(t64, q_2, t65);
          const f32 log_by_table = u_2 + t66;
          const f32 w = q_sel_f32(t69, log_by_table, in_x);
          const m32 t73 = Q_MASK(m32, in_x == 0.0f);
          const f32 t76 = q_sel_f32(t73, q_from_f32(0xff800000u), q_from_f32(0x7fc00000u));
          const f32 y_rare = q_sel_f32(t72, w, t76);
          const u32 log_bits_f32 = q_sub_u32(t2, 0x3f440000u);
          const u32 t6 = (u32)(log_bits_f32 & 0xff800000u);
          const i32 t7 = q_cast_u32_i32(t6);
          const f32 log_exponent = q_cast_i32_f32(t7);
          const u32 t12 = q_shrc_u32(log_bits_f32, 0x13u);
          const f32 t16 = q_table_log_hi[t12 & 15];
          const f32 k_2 = q_fma_f32(log_exponent, 0x1.62e4p-24f, t16);
          const u32 t9 = q_sub_u32(t2, t6);
          const f32 log_mantissa = q_from_f32((u32)t9);
          const f32 t13 = q_table_log_c[t12 & 15];
          const f32 r = q_fma_f32(log_mantissa, t13, -1.0f);
          const f32 u = k_2 + r;
          const f32 t32 = r * r;
          const f32 t27 = q_fma_f32(r, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
          const f32 t29 = q_fma_f32(r, t27, 0x1.55555p-2f);
          const f32 q = q_fma_f32(r, t29, -0x1.fffffcp-2f);
          const f32 t19 = q_table_log_lo[t12 & 15];
          const f32 k_lo = q_fma_f32(log_exponent, 0x1.7f7d1cp-43f, t19);
          const f32 t23 = k_2 - u;
          const f32 ul = t23 + r;
          const f32 t33 = k_lo + ul;
          const f32 t34 = q_fma_f32(t32, q, t33);
          const f32 y = u + t34;
          const f32 y_2 = q_sel_f32(log_beyond, y_rare, y);
          to_0[k] = q_canon_f32(y_2);
        }
      }
      if (is_apart) continue;
      Q_IVDEP
      for (i64 k = 0; k < m; k++) {
        const i64 i = start + k;
        ((f32_u *)row_out)[i] = block_0[k];
      }
    }
  }
}
