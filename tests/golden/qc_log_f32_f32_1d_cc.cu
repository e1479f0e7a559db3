struct q_args_2_1_0 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 slots, row_slots; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: ptr[k] holds the bits of input k, which is one value */
  u64 rank; /* extents in use */
  i64 n[1]; /* extents, inner first */
  i64 stride[2][1]; /* in bytes */
  u64 divide[1][2]; /* by row_slots, n[1], n[2]...: see q_divide */
};

/* log: log(x) (dsl/unary.lua:37, templates/elementwise.cu.in) */
/* A slot is 4 elements of a row, a turn of a thread a slot. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_log_f32_f32_1d_cc(const __grid_constant__ q_args_2_1_0 a) {
  const u32 n0 = (u32)a.n[0], slots = (u32)a.slots;
  const u32 step = (u32)blockDim.x, turn = (u32)gridDim.x * step * 1;
  const bool is_streamed = ((u32)a.flags & 1) != 0;
  u32 first = (u32)blockIdx.x * step * 1 + threadIdx.x;
  if (first >= slots) return;
  const u64 row_x = a.ptr[0];
  const u64 row_out = a.ptr[1];
  for (; first < slots; first += turn) {
    u32 start[1]; /* of slots in their rows; n0: there is no such slot */
    qc_vec<f32, 4> got_x[1];
    u64 to_out[1];
#pragma unroll
    for (u32 u = 0; u < 1; u++) {
      const u32 slot = first + u * step;
      const u32 i = slot;
      /* slots begin where output 0 is aligned */
      const u32 phase = (u32)((u64)row_out / 4 % 4);
      start[u] = slot < slots ? i * 4 - phase : n0;
      q_load_slot(got_x[u], row_x, start[u], n0);
      to_out[u] = row_out;
    }
#pragma unroll
    for (u32 u = 0; u < 1; u++) {
      qc_vec<f32, 4> put_out;
#pragma unroll
      for (u32 v = 0; v < 4; v++) {
        const f32 in_x = got_x[u].at[v];
        const u32 t49 = (u32)q_raw_f32(in_x);
        const u32 t51 = q_sub_u32(t49, 0x800000u);
        const bool t53 = t51 >= 0x7f000000u;
        const i32 t2 = (i32)q_raw_f32(in_x);
        const i32 t4 = q_sub_i32(t2, 1060439283);
        const i32 t6 = (i32)(t4 & -8388608);
        const i32 t10 = q_sub_i32(t2, t6);
        const f32 t11 = q_from_f32((u32)t10);
        const f32 t13 = __fsub_rn(t11, 0x1p+0f);
        const f32 t15 = __fmul_rn(-0x1p-1f, t13);
        const f32 t7 = q_cast_i32_f32(t6);
        const f32 t9 = __fmul_rn(t7, 0x1p-23f);
        const f32 t17 = q_fma_f32(t9, 0x1.62e4p-1f, t13);
        const f32 t18 = q_fma_f32(t15, t13, t17);
        const f32 t22 = __fsub_rn(t17, t18);
        const f32 t23 = q_fma_f32(t15, t13, t22);
        const f32 t24 = __fmul_rn(t13, t13);
        const f32 t25 = __fmul_rn(t24, t13);
        const f32 t41 = __fmul_rn(t24, t24);
        const f32 t37 = q_fma_f32(t13, -0x1.dd992ap-4f, 0x1.e6dd24p-4f);
        const f32 t39 = q_fma_f32(t24, 0x1.13be0cp-4f, t37);
        const f32 t34 = q_fma_f32(t13, -0x1.fc3e3ap-4f, 0x1.233af6p-3f);
        const f32 t40 = q_fma_f32(t24, t39, t34);
        const f32 t31 = q_fma_f32(t13, -0x1.555b8cp-3f, 0x1.99a478p-3f);
        const f32 t28 = q_fma_f32(t13, -0x1.000008p-2f, 0x1.555548p-2f);
        const f32 t42 = q_fma_f32(t24, t31, t28);
        const f32 t43 = q_fma_f32(t41, t40, t42);
        const f32 t20 = q_fma_f32(t9, -0x1.62e4p-1f, t17);
        const f32 t21 = __fsub_rn(t13, t20);
        const f32 t45 = q_fma_f32(t9, 0x1.7f7d1cp-20f, t21);
        const f32 t46 = q_fma_f32(t25, t43, t45);
        const f32 t47 = __fadd_rn(t23, t46);
        const f32 t48 = __fadd_rn(t18, t47);
        f32 t98 = t48;
        if (t53) {
          const bool t92 = in_x > 0.0f;
          const bool t89 = in_x < q_from_f32(0x7f800000u);
          const f32 t55 = __fmul_rn(in_x, 0x1p+23f);
          const i32 t56 = (i32)q_raw_f32(t55);
          const i32 t57 = q_sub_i32(t56, 1060439283);
          const i32 t58 = (i32)(t57 & -8388608);
          const i32 t63 = q_sub_i32(t56, t58);
          const f32 t64 = q_from_f32((u32)t63);
          const f32 t65 = __fsub_rn(t64, 0x1p+0f);
          const f32 t66 = __fmul_rn(-0x1p-1f, t65);
          const f32 t59 = q_cast_i32_f32(t58);
          const f32 t60 = __fmul_rn(t59, 0x1p-23f);
          const f32 t62 = __fsub_rn(t60, 0x1.7p+4f);
          const f32 t67 = q_fma_f32(t62, 0x1.62e4p-1f, t65);
          const f32 t68 = q_fma_f32(t66, t65, t67);
          const f32 t71 = __fsub_rn(t67, t68);
          const f32 t72 = q_fma_f32(t66, t65, t71);
          const f32 t73 = __fmul_rn(t65, t65);
          const f32 t74 = __fmul_rn(t73, t65);
          const f32 t81 = __fmul_rn(t73, t73);
          const f32 t78 = q_fma_f32(t65, -0x1.dd992ap-4f, 0x1.e6dd24p-4f);
          const f32 t79 = q_fma_f32(t73, 0x1.13be0cp-4f, t78);
          const f32 t77 = q_fma_f32(t65, -0x1.fc3e3ap-4f, 0x1.233af6p-3f);
          const f32 t80 = q_fma_f32(t73, t79, t77);
          const f32 t76 = q_fma_f32(t65, -0x1.555b8cp-3f, 0x1.99a478p-3f);
          const f32 t75 = q_fma_f32(t65, -0x1.000008p-2f, 0x1.555548p-2f);
          const f32 t82 = q_fma_f32(t73, t76, t75);
          const f32 t83 = q_fma_f32(t81, t80, t82);
          const f32 t69 = q_fma_f32(t62, -0x1.62e4p-1f, t67);
          const f32 t70 = __fsub_rn(t65, t69);
          const f32 t84 = q_fma_f32(t62, 0x1.7f7d1cp-20f, t70);
          const f32 t85 = q_fma_f32(t74, t83, t84);
          const f32 t86 = __fadd_rn(t72, t85);
          const f32 t87 = __fadd_rn(t68, t86);
          const f32 t90 = t89 ? t87 : in_x;
          const bool t93 = in_x == 0.0f;
          const f32 t96 = t93 ? q_from_f32(0xff800000u) : q_from_f32(0x7fc00000u);
          const f32 t97 = t92 ? t90 : t96;
          t98 = t97;
        }
        put_out.at[v] = q_canon_f32(t98);
      }
      q_store_slot(to_out[u], put_out, start[u], n0, is_streamed);
    }
  }
}
