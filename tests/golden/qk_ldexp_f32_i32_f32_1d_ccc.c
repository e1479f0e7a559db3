/* ldexp: ldexp(x, y) (dsl/parts.lua:51, dsl/math/ldexp.lua, templates/c/elementwise_rare.c.in) */
void Q_NAME(qk_ldexp_f32_i32_f32_1d_ccc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 4); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 4); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 4); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    const char *row_y = ptr[1];
    char *row_out = ptr[2];
    const int is_apart = row_x != row_out && row_y != row_out;
    for (i64 start = 0; start < n0; start += 256) {
      const i64 m = n0 - start < 256 ? n0 - start : 256;
      u32 most_0 = 0;
      f32 block_0[256];
      f32_u *const to_0 = is_apart ? (f32_u *)row_out + start : block_0;
      Q_IVDEP
      for (i64 k = 0; k < m; k++) {
        const i64 i = start + k;
        (void)i;
        const f32 in_x = ((const f32_u *)row_x)[i];
        const i32 in_y = ((const i32_u *)row_y)[i];
        const u32 t3 = q_cast_i32_u32(in_y);
        const u32 above_least = q_add_u32(t3, 0x7eu);
        const u32 t7 = q_shlc_u32(above_least, 0x17u);
        const u32 t9 = q_add_u32(t7, 0x800000u);
        const f32 t10 = q_from_f32((u32)t9);
        const f32 y = in_x * t10;
        most_0 = q_most_u32(most_0, above_least, 0xfdu);
        to_0[k] = q_canon_f32(y);
      }
      if (q_is_past_u32(most_0, 0xfdu)) {
        Q_IVDEP
        for (i64 k = 0; k < m; k++) {
          const i64 i = start + k;
          (void)i;
          const f32 in_x = ((const f32_u *)row_x)[i];
          const i32 in_y = ((const i32_u *)row_y)[i];
          const u32 t3 = q_cast_i32_u32(in_y);
          const u32 above_least = q_add_u32(t3, 0x7eu);
          const m32 t13 = Q_MASK(m32, above_least >= 0xfeu);
          const f32 t14 = q_cast_i32_f32(in_y);
          const m32 t45 = Q_MASK(m32, t14 == t14);
          const f32 t16 = q_max_f32(t14, -300.0f);
          const f32 t18 = q_min_f32(t16, 300.0f);
          const f32 all = q_rint_f32(t18);
          const f32 t21 = q_max_f32(all, -126.0f);
          const f32 n3 = q_min_f32(t21, 127.0f);
          const f32 t24 = all - n3;
          const f32 t25 = q_max_f32(t24, -126.0f);
          const f32 n2 = q_min_f32(t25, 127.0f);
          const f32 t27 = t24 - n2;
          const f32 t29 = t27 + 0x1.8000fep+23f;
          const i32 t30 = (i32)q_bits_f32(t29);
          const i32 t32 = q_shlc_i32(t30, 23);
          const f32 power_of_two = q_from_f32((u32)t32);
          const f32 t34 = in_x * power_of_two;
          const f32 t35 = n2 + 0x1.8000fep+23f;
          const i32 t36 = (i32)q_bits_f32(t35);
          const i32 t37 = q_shlc_i32(t36, 23);
          const f32 power_of_two_2 = q_from_f32((u32)t37);
          const f32 t39 = t34 * power_of_two_2;
          const f32 t40 = n3 + 0x1.8000fep+23f;
          const i32 t41 = (i32)q_bits_f32(t40);
          const i32 t42 = q_shlc_i32(t41, 23);
          const f32 power_of_two_3 = q_from_f32((u32)t42);
          const f32 product = t39 * power_of_two_3;
          const f32 y_rare = q_sel_f32(t45, product, q_from_f32(0x7fc00000u));
          const u32 t7 = q_shlc_u32(above_least, 0x17u);
          const u32 t9 = q_add_u32(t7, 0x800000u);
          const f32 t10 = q_from_f32((u32)t9);
          const f32 y = in_x * t10;
          const f32 y_2 = q_sel_f32(t13, y_rare, y);
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
