/* exp: exp(x) (dsl/unary.lua:29, templates/c/elementwise_rare.c.in) */
void Q_NAME(qk_exp_f64_f64_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
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
        const f64 t4 = q_fma_f64(in_x, 0x1.71547652b82fep+0, 0x1.8p+52);
        const f64 t5 = t4 - 0x1.8p+52;
        const f64 t7 = q_fma_f64(t5, -0x1.62e42fefa39efp-1, in_x);
        const f64 t9 = q_fma_f64(t5, -0x1.abc9e3b39803fp-56, t7);
        const f64 t10 = t9 * t9;
        const f64 t18 = q_fma_f64(t10, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
        const f64 t20 = q_fma_f64(t10, t18, 0x1.a01a011be3b2fp-13);
        const f64 t26 = q_fma_f64(t10, t20, 0x1.1111111128967p-7);
        const f64 t28 = q_fma_f64(t10, t26, 0x1.5555555555501p-3);
        const f64 t13 = q_fma_f64(t10, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
        const f64 t15 = q_fma_f64(t10, t13, 0x1.6c16c17cca2b3p-10);
        const f64 t22 = q_fma_f64(t10, t15, 0x1.55555555531f3p-5);
        const f64 t24 = q_fma_f64(t10, t22, 0.5);
        const f64 t29 = q_fma_f64(t9, t28, t24);
        const f64 t31 = q_fma_f64(t9, t29, 1.0);
        const f64 t32 = q_fma_f64(t9, t31, 1.0);
        const u64 t33 = (u64)q_raw_f64(t32);
        const u64 t34 = (u64)q_raw_f64(t4);
        const u64 t36 = q_shlc_u64(t34, 0x34ULL);
        const u64 t37 = q_add_u64(t33, t36);
        const f64 t38 = q_from_f64((u64)t37);
        const f64 t39 = q_abs_f64(in_x);
        most_0 = q_most_i64(most_0, q_raw_f64(t39), 4649438849678704639LL);
        to_0[k] = t38;
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
          const f64 t48 = q_fma_f64(t45, 0x1.71547652b82fep+0, 0x1.80000000007fep+52);
          const f64 t49 = t48 - 0x1.80000000007fep+52;
          const f64 t56 = q_fma_f64(t49, -0x1.62e42fefa39efp-1, t45);
          const f64 t59 = 1.0 + t56;
          const f64 t60 = t59 - 1.0;
          const f64 t61 = t56 - t60;
          const f64 t57 = q_fma_f64(t49, -0x1.abc9e3b39803fp-56, 0.0);
          const f64 t58 = t56 + t57;
          const f64 t62 = t58 * t58;
          const f64 t65 = q_fma_f64(t62, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
          const f64 t66 = q_fma_f64(t62, t65, 0x1.a01a011be3b2fp-13);
          const f64 t69 = q_fma_f64(t62, t66, 0x1.1111111128967p-7);
          const f64 t70 = q_fma_f64(t62, t69, 0x1.5555555555501p-3);
          const f64 t63 = q_fma_f64(t62, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
          const f64 t64 = q_fma_f64(t62, t63, 0x1.6c16c17cca2b3p-10);
          const f64 t67 = q_fma_f64(t62, t64, 0x1.55555555531f3p-5);
          const f64 t68 = q_fma_f64(t62, t67, 0.5);
          const f64 t71 = q_fma_f64(t58, t70, t68);
          const f64 t72 = q_fma_f64(t62, t71, t57);
          const f64 t73 = t61 + t72;
          const u64 t50 = (u64)q_raw_f64(t48);
          const u64 t52 = q_shlc_u64(t50, 0x33ULL);
          const u64 t54 = (u64)(t52 & 0x7ff0000000000000ULL);
          const f64 t55 = q_from_f64((u64)t54);
          const f64 t74 = t59 * t55;
          const f64 t75 = q_fma_f64(t73, t55, t74);
          const u64 t76 = q_shlc_u64(t50, 0x34ULL);
          const u64 t77 = q_sub_u64(t76, t54);
          const f64 t78 = q_from_f64((u64)t77);
          const f64 t79 = t75 * t78;
          const f64 t83 = q_sel_f64(t81, q_from_f64(0x7ff0000000000000ULL), t79);
          const f64 t4 = q_fma_f64(in_x, 0x1.71547652b82fep+0, 0x1.8p+52);
          const f64 t5 = t4 - 0x1.8p+52;
          const f64 t7 = q_fma_f64(t5, -0x1.62e42fefa39efp-1, in_x);
          const f64 t9 = q_fma_f64(t5, -0x1.abc9e3b39803fp-56, t7);
          const f64 t10 = t9 * t9;
          const f64 t18 = q_fma_f64(t10, 0x1.ad1fd0f731a3fp-26, 0x1.71df55a0f27ebp-19);
          const f64 t20 = q_fma_f64(t10, t18, 0x1.a01a011be3b2fp-13);
          const f64 t26 = q_fma_f64(t10, t20, 0x1.1111111128967p-7);
          const f64 t28 = q_fma_f64(t10, t26, 0x1.5555555555501p-3);
          const f64 t13 = q_fma_f64(t10, 0x1.289fa4be66be7p-22, 0x1.a019ab152991cp-16);
          const f64 t15 = q_fma_f64(t10, t13, 0x1.6c16c17cca2b3p-10);
          const f64 t22 = q_fma_f64(t10, t15, 0x1.55555555531f3p-5);
          const f64 t24 = q_fma_f64(t10, t22, 0.5);
          const f64 t29 = q_fma_f64(t9, t28, t24);
          const f64 t31 = q_fma_f64(t9, t29, 1.0);
          const f64 t32 = q_fma_f64(t9, t31, 1.0);
          const u64 t33 = (u64)q_raw_f64(t32);
          const u64 t34 = (u64)q_raw_f64(t4);
          const u64 t36 = q_shlc_u64(t34, 0x34ULL);
          const u64 t37 = q_add_u64(t33, t36);
          const f64 t38 = q_from_f64((u64)t37);
          const f64 t84 = q_sel_f64(t42, t83, t38);
          to_0[k] = q_canon_f64(t84);
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
