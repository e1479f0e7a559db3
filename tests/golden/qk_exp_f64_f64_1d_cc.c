/* exp: exp(x) (dsl/unary.lua:29, dsl/math/exp.lua, templates/c/elementwise_rare.c.in) */
void Q_NAME(qk_exp_f64_f64_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 8); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 8); /* out is contiguous */
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    const int is_apart = row_x != row_out;
    for (i64 start = 0; start < n0; start += 256) {
      const i64 m = n0 - start < 256 ? n0 - start : 256;
      i64 most_0 = 0;
      f64 block_0[256];
      f64_u *const to_0 = is_apart ? (f64_u *)row_out + start : block_0;
      Q_IVDEP
      for (i64 k = 0; k < m; k++) {
        const i64 i = start + k;
        (void)i;
        const f64 in_x = ((const f64_u *)row_x)[i];
        const f64 t = q_fma_f64(in_x, 0x1.71547652b82fep+0, 0x1.8p+52);
        const f64 n_2 = t - 0x1.8p+52;
        const f64 exp_rest_hi = q_fma_f64(n_2, -0x1.62e42fefa39efp-1, in_x);
        const f64 r = q_fma_f64(n_2, -0x1.abc9e3b39803fp-56, exp_rest_hi);
        const f64 z = r * r;
        const f64 t18 = q_fma_f64(z, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
        const f64 o5 = q_fma_f64(z, t18, 0x1.a01a011be3b2fp-13);
        const f64 t26 = q_fma_f64(z, o5, 0x1.1111111128967p-7);
        const f64 o = q_fma_f64(z, t26, 0x1.5555555555501p-3);
        const f64 t13 = q_fma_f64(z, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
        const f64 e4 = q_fma_f64(z, t13, 0x1.6c16c17cca2b3p-10);
        const f64 t22 = q_fma_f64(z, e4, 0x1.55555555531f3p-5);
        const f64 e = q_fma_f64(z, t22, 0.5);
        const f64 exp_tail = q_fma_f64(r, o, e);
        const f64 t31 = q_fma_f64(r, exp_tail, 1.0);
        const f64 t32 = q_fma_f64(r, t31, 1.0);
        const u64 t33 = (u64)q_raw_f64(t32);
        const u64 t34 = (u64)q_raw_f64(t);
        const u64 t36 = q_shlc_u64(t34, 0x34ULL);
        const u64 t37 = q_add_u64(t33, t36);
        const f64 y = q_from_f64((u64)t37);
        const f64 t39 = q_abs_f64(in_x);
        most_0 = q_most_i64(most_0, (i64)q_raw_f64(t39), 4649438849678704639LL);
        to_0[k] = y;
      }
      if (q_is_past_i64(most_0, 4649438849678704639LL)) {
        Q_IVDEP
        for (i64 k = 0; k < m; k++) {
          const i64 i = start + k;
          (void)i;
          const f64 in_x = ((const f64_u *)row_x)[i];
          const f64 t39 = q_abs_f64(in_x);
          const m64 t41 = Q_MASK(m64, t39 < 708.0);
          const m64 t42 = ~t41;
          const m64 t81 = Q_MASK(m64, in_x > 710.0);
          const m64 t44 = Q_MASK(m64, in_x < -746.0);
          const f64 t45 = q_sel_f64(t44, -746.0, in_x);
          const f64 t_2 = q_fma_f64(t45, 0x1.71547652b82fep+0, 0x1.80000000007fep+52);
          const f64 n_3 = t_2 - 0x1.80000000007fep+52;
          const f64 rh = q_fma_f64(n_3, -0x1.62e42fefa39efp-1, t45);
          const f64 s = 1.0 + rh;
          const f64 t60 = s - 1.0;
          const f64 t61 = rh - t60;
          const f64 rl = q_fma_f64(n_3, -0x1.abc9e3b39803fp-56, 0.0);
          const f64 r_2 = rh + rl;
          const f64 z_2 = r_2 * r_2;
          const f64 t65 = q_fma_f64(z_2, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
          const f64 o5_2 = q_fma_f64(z_2, t65, 0x1.a01a011be3b2fp-13);
          const f64 t69 = q_fma_f64(z_2, o5_2, 0x1.1111111128967p-7);
          const f64 o_2 = q_fma_f64(z_2, t69, 0x1.5555555555501p-3);
          const f64 t63 = q_fma_f64(z_2, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
          const f64 e4_2 = q_fma_f64(z_2, t63, 0x1.6c16c17cca2b3p-10);
          const f64 t67 = q_fma_f64(z_2, e4_2, 0x1.55555555531f3p-5);
          const f64 e_2 = q_fma_f64(z_2, t67, 0.5);
          const f64 exp_tail_2 = q_fma_f64(r_2, o_2, e_2);
          const f64 t72 = q_fma_f64(z_2, exp_tail_2, rl);
          const f64 exp_sum_lo = t61 + t72;
          const u64 b = (u64)q_raw_f64(t_2);
          const u64 t52 = q_shlc_u64(b, 0x33ULL);
          const u64 t54 = (u64)(t52 & 0x7ff0000000000000ULL);
          const f64 a = q_from_f64((u64)t54);
          const f64 t74 = s * a;
          const f64 t75 = q_fma_f64(exp_sum_lo, a, t74);
          const u64 t76 = q_shlc_u64(b, 0x34ULL);
          const u64 t77 = q_sub_u64(t76, t54);
          const f64 exp_scale_b = q_from_f64((u64)t77);
          const f64 y_2 = t75 * exp_scale_b;
          const f64 y_rare = q_sel_f64(t81, q_from_f64(0x7ff0000000000000ULL), y_2);
          const f64 t = q_fma_f64(in_x, 0x1.71547652b82fep+0, 0x1.8p+52);
          const f64 n_2 = t - 0x1.8p+52;
          const f64 exp_rest_hi = q_fma_f64(n_2, -0x1.62e42fefa39efp-1, in_x);
          const f64 r = q_fma_f64(n_2, -0x1.abc9e3b39803fp-56, exp_rest_hi);
          const f64 z = r * r;
          const f64 t18 = q_fma_f64(z, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
          const f64 o5 = q_fma_f64(z, t18, 0x1.a01a011be3b2fp-13);
          const f64 t26 = q_fma_f64(z, o5, 0x1.1111111128967p-7);
          const f64 o = q_fma_f64(z, t26, 0x1.5555555555501p-3);
          const f64 t13 = q_fma_f64(z, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
          const f64 e4 = q_fma_f64(z, t13, 0x1.6c16c17cca2b3p-10);
          const f64 t22 = q_fma_f64(z, e4, 0x1.55555555531f3p-5);
          const f64 e = q_fma_f64(z, t22, 0.5);
          const f64 exp_tail = q_fma_f64(r, o, e);
          const f64 t31 = q_fma_f64(r, exp_tail, 1.0);
          const f64 t32 = q_fma_f64(r, t31, 1.0);
          const u64 t33 = (u64)q_raw_f64(t32);
          const u64 t34 = (u64)q_raw_f64(t);
          const u64 t36 = q_shlc_u64(t34, 0x34ULL);
          const u64 t37 = q_add_u64(t33, t36);
          const f64 y = q_from_f64((u64)t37);
          const f64 y_3 = q_sel_f64(t42, y_rare, y);
          to_0[k] = q_canon_f64(y_3);
        }
      }
      if (is_apart) continue;
      Q_IVDEP
      for (i64 k = 0; k < m; k++) {
        const i64 i = start + k;
        ((f64_u *)row_out)[i] = block_0[k];
      }
    }
  }
}
