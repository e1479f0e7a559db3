/* exp: exp(x) (dsl/unary.lua:29, dsl/math/exp.lua, templates/c/elementwise_rare_light.c.in) */
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
    int is_light = 0; /* a block of this row had elements that need light blocks: it begins with them, and so do those behind it */
    for (i64 start = 0; start < n0; start += 256) {
      const i64 m = n0 - start < 256 ? n0 - start : 256;
      f64 block_0[256];
      f64_u *const to_0 = is_apart ? (f64_u *)row_out + start : block_0;
      if (!is_light) {
        i64 most_0 = 0;
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
          const f64 t27 = q_fma_f64(z, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
          const f64 o5 = q_fma_f64(z, t27, 0x1.a01a011be3b2fp-13);
          const f64 t35 = q_fma_f64(z, o5, 0x1.1111111128967p-7);
          const f64 o = q_fma_f64(z, t35, 0x1.5555555555501p-3);
          const f64 t22 = q_fma_f64(z, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
          const f64 e4 = q_fma_f64(z, t22, 0x1.6c16c17cca2b3p-10);
          const f64 t31 = q_fma_f64(z, e4, 0x1.55555555531f3p-5);
          const f64 e = q_fma_f64(z, t31, 0.5);
          const f64 exp_tail = q_fma_f64(r, o, e);
          const f64 t40 = q_fma_f64(r, exp_tail, 1.0);
          const f64 t41 = q_fma_f64(r, t40, 1.0);
          const u64 t42 = (u64)q_raw_f64(t41);
          const u64 t43 = (u64)q_raw_f64(t);
          const u64 t45 = q_shlc_u64(t43, 0x34ULL);
          const u64 t46 = q_add_u64(t42, t45);
          const f64 y = q_from_f64((u64)t46);
          const f64 t2 = q_abs_f64(in_x);
          most_0 = q_most_i64(most_0, (i64)q_raw_f64(t2), 4649438849678704639LL);
          to_0[k] = y;
        }
        is_light = q_is_past_i64(most_0, 4649438849678704639LL);
      }
      if (is_light) {
        i64 most_0 = 0;
        Q_IVDEP
        for (i64 k = 0; k < m; k++) {
          const i64 i = start + k;
          (void)i;
          const f64 in_x = ((const f64_u *)row_x)[i];
          const f64 t2 = q_abs_f64(in_x);
          const m64 t4 = Q_MASK(m64, t2 < 708.0);
          const m64 t5 = ~t4;
          const m64 t7 = Q_MASK(m64, in_x < -746.0);
          const f64 z_rare = q_sel_f64(t7, 0.0, in_x);
          const f64 z_2 = q_sel_f64(t5, z_rare, in_x);
          const f64 t = q_fma_f64(z_2, 0x1.71547652b82fep+0, 0x1.8p+52);
          const f64 n_2 = t - 0x1.8p+52;
          const f64 exp_rest_hi = q_fma_f64(n_2, -0x1.62e42fefa39efp-1, z_2);
          const f64 r = q_fma_f64(n_2, -0x1.abc9e3b39803fp-56, exp_rest_hi);
          const f64 z = r * r;
          const f64 t27 = q_fma_f64(z, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
          const f64 o5 = q_fma_f64(z, t27, 0x1.a01a011be3b2fp-13);
          const f64 t35 = q_fma_f64(z, o5, 0x1.1111111128967p-7);
          const f64 o = q_fma_f64(z, t35, 0x1.5555555555501p-3);
          const f64 t22 = q_fma_f64(z, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
          const f64 e4 = q_fma_f64(z, t22, 0x1.6c16c17cca2b3p-10);
          const f64 t31 = q_fma_f64(z, e4, 0x1.55555555531f3p-5);
          const f64 e = q_fma_f64(z, t31, 0.5);
          const f64 exp_tail = q_fma_f64(r, o, e);
          const f64 t40 = q_fma_f64(r, exp_tail, 1.0);
          const f64 t41 = q_fma_f64(r, t40, 1.0);
          const u64 t42 = (u64)q_raw_f64(t41);
          const u64 t43 = (u64)q_raw_f64(t);
          const u64 t45 = q_shlc_u64(t43, 0x34ULL);
          const u64 t46 = q_add_u64(t42, t45);
          const f64 y = q_from_f64((u64)t46);
          const f64 y_rare_2 = q_sel_f64(t7, 0.0, y);
          const f64 y_3 = q_sel_f64(t5, y_rare_2, y);
          const f64 t50 = q_abs_f64(z_2);
          most_0 = q_most_i64(most_0, (i64)q_raw_f64(t50), 4649438849678704639LL);
          to_0[k] = y_3;
        }
        if (q_is_past_i64(most_0, 4649438849678704639LL)) {
          Q_IVDEP
          for (i64 k = 0; k < m; k++) {
            const i64 i = start + k;
            (void)i;
            const f64 in_x = ((const f64_u *)row_x)[i];
            const f64 t2 = q_abs_f64(in_x);
            const m64 t4 = Q_MASK(m64, t2 < 708.0);
            const m64 t5 = ~t4;
            const m64 t7 = Q_MASK(m64, in_x < -746.0);
            const f64 z_rare = q_sel_f64(t7, 0.0, in_x);
            const f64 z_2 = q_sel_f64(t5, z_rare, in_x);
            const f64 t50 = q_abs_f64(z_2);
            const m64 t51 = Q_MASK(m64, t50 < 708.0);
            const m64 t52 = ~t51;
            const m64 t87 = Q_MASK(m64, in_x <= 0x1.62e42fefa39efp+9);
            const f64 z_3 = q_sel_f64(t7, -746.0, in_x);
            const f64 t_2 = q_fma_f64(z_3, 0x1.71547652b82fep+0, 0x1.8p+52);
            const f64 n_3 = t_2 - 0x1.8p+52;
            const f64 rh = q_fma_f64(n_3, -0x1.62e42fefa39efp-1, z_3);
            const f64 s = 1.0 + rh;
            const f64 t60 = s - 1.0;
            const f64 t61 = rh - t60;
            const f64 rl = q_fma_f64(n_3, -0x1.abc9e3b39803fp-56, 0.0);
            const f64 r_2 = rh + rl;
            const f64 z_4 = r_2 * r_2;
            const f64 t65 = q_fma_f64(z_4, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
            const f64 o5_2 = q_fma_f64(z_4, t65, 0x1.a01a011be3b2fp-13);
            const f64 t69 = q_fma_f64(z_4, o5_2, 0x1.1111111128967p-7);
            const f64 o_2 = q_fma_f64(z_4, t69, 0x1.5555555555501p-3);
            const f64 t63 = q_fma_f64(z_4, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
            const f64 e4_2 = q_fma_f64(z_4, t63, 0x1.6c16c17cca2b3p-10);
            const f64 t67 = q_fma_f64(z_4, e4_2, 0x1.55555555531f3p-5);
            const f64 e_2 = q_fma_f64(z_4, t67, 0.5);
            const f64 exp_tail_2 = q_fma_f64(r_2, o_2, e_2);
            const f64 t72 = q_fma_f64(z_4, exp_tail_2, rl);
            const f64 exp_sum_lo = t61 + t72;
            const f64 t74 = s + exp_sum_lo;
            const u64 t75 = (u64)q_raw_f64(t_2);
            const u64 t76 = q_shlc_u64(t75, 0x34ULL);
            const u64 t78 = q_sub_u64(0x0ULL, t76);
            const f64 t79 = q_from_f64((u64)t78);
            const f64 w = q_fma_f64(t74, 0.5, t79);
            const m64 t81 = Q_MASK(m64, t74 > w);
            const f64 t82 = q_sel_f64(t81, t74, w);
            const u64 t83 = (u64)q_raw_f64(t82);
            const u64 t84 = q_add_u64(t83, t76);
            const f64 y_2 = q_from_f64((u64)t84);
            const f64 t89 = in_x + q_from_f64(0x7ff0000000000000ULL);
            const f64 y_rare = q_sel_f64(t87, y_2, t89);
            const f64 y_4 = q_sel_f64(t52, y_rare, to_0[k]);
            to_0[k] = q_canon_f64(y_4);
          }
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
