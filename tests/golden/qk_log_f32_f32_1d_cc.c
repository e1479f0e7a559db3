/* log: log(x) (dsl/unary.lua:37, templates/elementwise.c.in) */
void Q_NAME(qk_log_f32_f32_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  {
    const char *row_x = ptr[0];
    char *row_out = ptr[1];
    for (i64 start = 0; start < n0; start += 256) {
      const i64 m = n0 - start < 256 ? n0 - start : 256;
      i32 any = 0;
      f32 block_0[256];
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
        const m32 t50 = Q_MASK(m32, in_x >= 0x1p-126f);
        const m32 t52 = Q_MASK(m32, in_x < q_from_f32(0x7f800000u));
        const m32 t53 = t50 & t52;
        const m32 t54 = ~t53;
        any |= (i32)(t54) ^ q_zero; /* xor: a plain or of comparisons is no reduction to Clang */
        block_0[k] = q_canon_f32(t48);
      }
      if (any != 0) {
        Q_IVDEP
        for (i64 k = 0; k < m; k++) {
          const i64 i = start + k;
          (void)i;
          const f32 in_x = ((const f32_u *)row_x)[i];
          const m32 t50 = Q_MASK(m32, in_x >= 0x1p-126f);
          const m32 t52 = Q_MASK(m32, in_x < q_from_f32(0x7f800000u));
          const m32 t53 = t50 & t52;
          const m32 t54 = ~t53;
          const m32 t91 = Q_MASK(m32, in_x > 0.0f);
          const f32 t56 = in_x * 0x1p+23f;
          const i32 t57 = (i32)q_raw_f32(t56);
          const i32 t58 = q_sub_i32(t57, 1060439283);
          const i32 t59 = (i32)(t58 & -8388608);
          const i32 t64 = q_sub_i32(t57, t59);
          const f32 t65 = q_from_f32((u32)t64);
          const f32 t66 = t65 - 0x1p+0f;
          const f32 t67 = -0x1p-1f * t66;
          const f32 t60 = q_cast_i32_f32(t59);
          const f32 t61 = t60 * 0x1p-23f;
          const f32 t63 = t61 - 0x1.7p+4f;
          const f32 t68 = q_fma_f32(t63, 0x1.62e4p-1f, t66);
          const f32 t69 = q_fma_f32(t67, t66, t68);
          const f32 t72 = t68 - t69;
          const f32 t73 = q_fma_f32(t67, t66, t72);
          const f32 t74 = t66 * t66;
          const f32 t75 = t74 * t66;
          const f32 t82 = t74 * t74;
          const f32 t79 = q_fma_f32(t66, -0x1.dd992ap-4f, 0x1.e6dd24p-4f);
          const f32 t80 = q_fma_f32(t74, 0x1.13be0cp-4f, t79);
          const f32 t78 = q_fma_f32(t66, -0x1.fc3e3ap-4f, 0x1.233af6p-3f);
          const f32 t81 = q_fma_f32(t74, t80, t78);
          const f32 t77 = q_fma_f32(t66, -0x1.555b8cp-3f, 0x1.99a478p-3f);
          const f32 t76 = q_fma_f32(t66, -0x1.000008p-2f, 0x1.555548p-2f);
          const f32 t83 = q_fma_f32(t74, t77, t76);
          const f32 t84 = q_fma_f32(t82, t81, t83);
          const f32 t70 = q_fma_f32(t63, -0x1.62e4p-1f, t68);
          const f32 t71 = t66 - t70;
          const f32 t85 = q_fma_f32(t63, 0x1.7f7d1cp-20f, t71);
          const f32 t86 = q_fma_f32(t75, t84, t85);
          const f32 t87 = t73 + t86;
          const f32 t88 = t69 + t87;
          const f32 t89 = q_sel_f32(t52, t88, in_x);
          const m32 t92 = Q_MASK(m32, in_x == 0.0f);
          const f32 t95 = q_sel_f32(t92, q_from_f32(0xff800000u), q_from_f32(0x7fc00000u));
          const f32 t96 = q_sel_f32(t91, t89, t95);
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
          const f32 t97 = q_sel_f32(t54, t96, t48);
          block_0[k] = q_canon_f32(t97);
        }
      }
      Q_IVDEP
      for (i64 k = 0; k < m; k++) {
        const i64 i = start + k;
        ((f32_u *)row_out)[i] = block_0[k];
      }
    }
  }
}
