/* log: log(x) (dsl/unary.lua:37, templates/elementwise.c.in) */
void Q_NAME(qk_log_f32_f32_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    const int is_apart = row_x != row_out;
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
        const i32 t2 = (i32)q_raw_f32(in_x);
        const i32 t4 = q_sub_i32(t2, 1060439283);
        const i32 t6 = (i32)(t4 & -8388608);
        const i32 t10 = q_sub_i32(t2, t6);
        const f32 t11 = q_from_f32((u32)t10);
        const f32 t13 = t11 - 0x1p+0f;
        const f32 t15 = -0x1p-1f * t13;
        const f32 t7 = q_cast_i32_f32(t6);
        const f32 t9 = t7 * 0x1p-23f;
        const f32 t17 = q_fma_f32(t9, 0x1.62e4p-1f, t13);
        const f32 t18 = q_fma_f32(t15, t13, t17);
        const f32 t22 = t17 - t18;
        const f32 t23 = q_fma_f32(t15, t13, t22);
        const f32 t24 = t13 * t13;
        const f32 t25 = t24 * t13;
        const f32 t41 = t24 * t24;
        const f32 t37 = q_fma_f32(t13, -0x1.dd992ap-4f, 0x1.e6dd24p-4f);
        const f32 t39 = q_fma_f32(t24, 0x1.13be0cp-4f, t37);
        const f32 t34 = q_fma_f32(t13, -0x1.fc3e3ap-4f, 0x1.233af6p-3f);
        const f32 t40 = q_fma_f32(t24, t39, t34);
        const f32 t31 = q_fma_f32(t13, -0x1.555b8cp-3f, 0x1.99a478p-3f);
        const f32 t28 = q_fma_f32(t13, -0x1.000008p-2f, 0x1.555548p-2f);
        const f32 t42 = q_fma_f32(t24, t31, t28);
        const f32 t43 = q_fma_f32(t41, t40, t42);
        const f32 t20 = q_fma_f32(t9, -0x1.62e4p-1f, t17);
        const f32 t21 = t13 - t20;
        const f32 t45 = q_fma_f32(t9, 0x1.7f7d1cp-20f, t21);
        const f32 t46 = q_fma_f32(t25, t43, t45);
        const f32 t47 = t23 + t46;
        const f32 t48 = t18 + t47;
        const u32 t49 = (u32)q_raw_f32(in_x);
        const u32 t51 = q_sub_u32(t49, 0x800000u);
        most_0 = q_most_u32(most_0, t51, 0x7effffffu);
        to_0[k] = q_canon_f32(t48);
      }
      if (q_is_past_u32(most_0, 0x7effffffu)) {
        Q_IVDEP
        for (i64 k = 0; k < m; k++) {
          const i64 i = start + k;
          (void)i;
          const f32 in_x = ((const f32_u *)row_x)[i];
          const u32 t49 = (u32)q_raw_f32(in_x);
          const u32 t51 = q_sub_u32(t49, 0x800000u);
          const m32 t53 = Q_MASK(m32, t51 >= 0x7f000000u);
          const m32 t92 = Q_MASK(m32, in_x > 0.0f);
          const m32 t89 = Q_MASK(m32, in_x < q_from_f32(0x7f800000u));
          const f32 t55 = in_x * 0x1p+23f;
          const i32 t56 = (i32)q_raw_f32(t55);
          const i32 t57 = q_sub_i32(t56, 1060439283);
          const i32 t58 = (i32)(t57 & -8388608);
          const i32 t63 = q_sub_i32(t56, t58);
          const f32 t64 = q_from_f32((u32)t63);
          const f32 t65 = t64 - 0x1p+0f;
          const f32 t66 = -0x1p-1f * t65;
          const f32 t59 = q_cast_i32_f32(t58);
          const f32 t60 = t59 * 0x1p-23f;
          const f32 t62 = t60 - 0x1.7p+4f;
          const f32 t67 = q_fma_f32(t62, 0x1.62e4p-1f, t65);
          const f32 t68 = q_fma_f32(t66, t65, t67);
          const f32 t71 = t67 - t68;
          const f32 t72 = q_fma_f32(t66, t65, t71);
          const f32 t73 = t65 * t65;
          const f32 t74 = t73 * t65;
          const f32 t81 = t73 * t73;
          const f32 t78 = q_fma_f32(t65, -0x1.dd992ap-4f, 0x1.e6dd24p-4f);
          const f32 t79 = q_fma_f32(t73, 0x1.13be0cp-4f, t78);
          const f32 t77 = q_fma_f32(t65, -0x1.fc3e3ap-4f, 0x1.233af6p-3f);
          const f32 t80 = q_fma_f32(t73, t79, t77);
          const f32 t76 = q_fma_f32(t65, -0x1.555b8cp-3f, 0x1.99a478p-3f);
          const f32 t75 = q_fma_f32(t65, -0x1.000008p-2f, 0x1.555548p-2f);
          const f32 t82 = q_fma_f32(t73, t76, t75);
          const f32 t83 = q_fma_f32(t81, t80, t82);
          const f32 t69 = q_fma_f32(t62, -0x1.62e4p-1f, t67);
          const f32 t70 = t65 - t69;
          const f32 t84 = q_fma_f32(t62, 0x1.7f7d1cp-20f, t70);
          const f32 t85 = q_fma_f32(t74, t83, t84);
          const f32 t86 = t72 + t85;
          const f32 t87 = t68 + t86;
          const f32 t90 = q_sel_f32(t89, t87, in_x);
          const m32 t93 = Q_MASK(m32, in_x == 0.0f);
          const f32 t96 = q_sel_f32(t93, q_from_f32(0xff800000u), q_from_f32(0x7fc00000u));
          const f32 t97 = q_sel_f32(t92, t90, t96);
          const i32 t2 = (i32)q_raw_f32(in_x);
          const i32 t4 = q_sub_i32(t2, 1060439283);
          const i32 t6 = (i32)(t4 & -8388608);
          const i32 t10 = q_sub_i32(t2, t6);
          const f32 t11 = q_from_f32((u32)t10);
          const f32 t13 = t11 - 0x1p+0f;
          const f32 t15 = -0x1p-1f * t13;
          const f32 t7 = q_cast_i32_f32(t6);
          const f32 t9 = t7 * 0x1p-23f;
          const f32 t17 = q_fma_f32(t9, 0x1.62e4p-1f, t13);
          const f32 t18 = q_fma_f32(t15, t13, t17);
          const f32 t22 = t17 - t18;
          const f32 t23 = q_fma_f32(t15, t13, t22);
          const f32 t24 = t13 * t13;
          const f32 t25 = t24 * t13;
          const f32 t41 = t24 * t24;
          const f32 t37 = q_fma_f32(t13, -0x1.dd992ap-4f, 0x1.e6dd24p-4f);
          const f32 t39 = q_fma_f32(t24, 0x1.13be0cp-4f, t37);
          const f32 t34 = q_fma_f32(t13, -0x1.fc3e3ap-4f, 0x1.233af6p-3f);
          const f32 t40 = q_fma_f32(t24, t39, t34);
          const f32 t31 = q_fma_f32(t13, -0x1.555b8cp-3f, 0x1.99a478p-3f);
          const f32 t28 = q_fma_f32(t13, -0x1.000008p-2f, 0x1.555548p-2f);
          const f32 t42 = q_fma_f32(t24, t31, t28);
          const f32 t43 = q_fma_f32(t41, t40, t42);
          const f32 t20 = q_fma_f32(t9, -0x1.62e4p-1f, t17);
          const f32 t21 = t13 - t20;
          const f32 t45 = q_fma_f32(t9, 0x1.7f7d1cp-20f, t21);
          const f32 t46 = q_fma_f32(t25, t43, t45);
          const f32 t47 = t23 + t46;
          const f32 t48 = t18 + t47;
          const f32 t98 = q_sel_f32(t53, t97, t48);
          to_0[k] = q_canon_f32(t98);
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
