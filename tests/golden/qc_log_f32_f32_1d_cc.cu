struct q_args_2_1_0 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, row_items; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 rank; /* extents in use */
  i64 n[1]; /* extents, inner first */
  i64 stride[2][1]; /* in bytes */
  u64 divisor[1][2]; /* of row_items, n[1], n[2]...: see q_fast_divide */
};

alignas(128) static __device__ const f32 q_table_log_hi[16] = {
  -0x1.fb9p-3f, -0x1.9528p-3f, -0x1.5ffp-3f, -0x1.2958p-3f,
  -0x1.6f1p-4f, -0x1.f0ap-5f, -0x1.f84p-6f, 0.0f,
  0x1.086p-4f, 0x1.da7p-4f, 0x1.5bf8p-3f, 0x1.d1p-3f,
  0x1.1178p-2f, 0x1.522cp-2f, 0x1.7fbp-2f, 0x1.973cp-2f,
};
alignas(128) static __device__ const f32 q_table_log_c[16] = {
  1.28125f, 1.21875f, 1.1875f, 1.15625f,
  1.09375f, 1.0625f, 1.03125f, 1.0f,
  0.9375f, 0.890625f, 0.84375f, 0.796875f,
  0.765625f, 0.71875f, 0.6875f, 0.671875f,
};
alignas(128) static __device__ const f32 q_table_log_lo[16] = {
  -0x1.86d5e4p-19f, 0x1.2b185ep-18f, -0x1.83853cp-18f, 0x1.683fp-18f,
  0x1.6ba8d4p-19f, -0x1.86008cp-20f, 0x1.64f188p-18f, 0.0f,
  -0x1.9d2988p-18f, 0x1.3b1c22p-19f, -0x1.fca55ep-18f, 0x1.bf932ap-18f,
  0x1.d044fcp-19f, -0x1.1f8c76p-18f, -0x1.7109fap-20f, -0x1.cbcecap-18f,
};

/* log: log(x) (dsl/unary.lua:39, dsl/math/log.lua, templates/cuda/elementwise.cu.in) */
/* An item is 4 elements of a row; 1 item per thread. */
extern "C" __global__ void __launch_bounds__(256, 2) qc_log_f32_f32_1d_cc(const __grid_constant__ q_args_2_1_0 args) {
  const u32 n0 = (u32)args.n[0], items = (u32)args.items;
  const u32 block = (u32)blockDim.x, grid_stride = (u32)gridDim.x * block * 1;
  const bool is_streamed = ((u32)args.flags & 1) != 0;
  u32 first = (u32)blockIdx.x * block * 1 + threadIdx.x;
  if (first >= items) return;
  const u64 row_x = args.ptr[0];
  const u64 row_out = args.ptr[1];
  for (; first < items; first += grid_stride) {
    u32 start[1]; /* of the items in their rows; n0: no item */
    qc_vec<f32, 4> got_x[1];
    u64 to_out[1];
#pragma unroll
    for (u32 nth = 0; nth < 1; nth++) {
      const u32 item = first + nth * block;
      const u32 i = item;
      /* items begin where output 0 is aligned */
      const u32 phase = (u32)((u64)row_out / 4 % 4);
      start[nth] = item < items ? i * 4 - phase : n0;
      q_load_item(got_x[nth], row_x, start[nth], n0);
      to_out[nth] = row_out;
    }
#pragma unroll
    for (u32 nth = 0; nth < 1; nth++) {
      qc_vec<f32, 4> put_out;
#pragma unroll
      for (u32 element = 0; element < 4; element++) {
        const f32 in_x = got_x[nth].at[element];
        const u32 t2 = (u32)q_raw_f32(in_x);
        const u32 t37 = q_sub_u32(t2, 0x800000u);
        const bool log_beyond = t37 >= 0x7f000000u;
        const u32 log_bits_f32 = q_sub_u32(t2, 0x3f440000u);
        const u32 t6 = (u32)(log_bits_f32 & 0xff800000u);
        const i32 t7 = q_cast_u32_i32(t6);
        const f32 log_exponent = q_cast_i32_f32(t7);
        const u32 t12 = q_shrc_u32(log_bits_f32, 0x13u);
        const f32 t16 = q_table_log_hi[t12 & 15];
        const f32 k = q_fma_f32(log_exponent, 0x1.62e4p-24f, t16);
        const u32 t9 = q_sub_u32(t2, t6);
        const f32 log_mantissa = q_from_f32((u32)t9);
        const f32 t13 = q_table_log_c[t12 & 15];
        const f32 r = q_fma_f32(log_mantissa, t13, -1.0f);
        const f32 u = __fadd_rn(k, r);
        const f32 t32 = __fmul_rn(r, r);
        const f32 t27 = q_fma_f32(r, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
        const f32 t29 = q_fma_f32(r, t27, 0x1.55555p-2f);
        const f32 q = q_fma_f32(r, t29, -0x1.fffffcp-2f);
        const f32 t19 = q_table_log_lo[t12 & 15];
        const f32 k_lo = q_fma_f32(log_exponent, 0x1.7f7d1cp-43f, t19);
        const f32 t23 = __fsub_rn(k, u);
        const f32 ul = __fadd_rn(t23, r);
        const f32 t33 = __fadd_rn(k_lo, ul);
        const f32 t34 = q_fma_f32(t32, q, t33);
        const f32 y = __fadd_rn(u, t34);
        f32 y_2 = y;
        if (log_beyond) {
          const bool t72 = in_x > 0.0f;
          const bool t69 = in_x < q_from_f32(0x7f800000u);
          const f32 n_2 = __fmul_rn(in_x, 0x1p+23f);
          const u32 t42 = (u32)q_raw_f32(n_2);
          const u32 log_bits_f32_2 = q_sub_u32(t42, 0x3f440000u);
          const u32 t44 = (u32)(log_bits_f32_2 & 0xff800000u);
          const i32 t45 = q_cast_u32_i32(t44);
          const f32 log_exponent_2 = q_cast_i32_f32(t45);
          const f32 t48 = __fsub_rn(log_exponent_2, 0x1.7p+27f);
          const u32 t51 = q_shrc_u32(log_bits_f32_2, 0x13u);
          const f32 t54 = q_table_log_hi[t51 & 15];
          const f32 k_2 = q_fma_f32(t48, 0x1.62e4p-24f, t54);
          const u32 t49 = q_sub_u32(t42, t44);
          const f32 log_mantissa_2 = q_from_f32((u32)t49);
          const f32 t52 = q_table_log_c[t51 & 15];
          const f32 r_2 = q_fma_f32(log_mantissa_2, t52, -1.0f);
          const f32 u_2 = __fadd_rn(k_2, r_2);
          const f32 t64 = __fmul_rn(r_2, r_2);
          const f32 t61 = q_fma_f32(r_2, 0x1.9a10cep-3f, -0x1.003cc8p-2f);
          const f32 t62 = q_fma_f32(r_2, t61, 0x1.55555p-2f);
          const f32 q_2 = q_fma_f32(r_2, t62, -0x1.fffffcp-2f);
          const f32 t56 = q_table_log_lo[t51 & 15];
          const f32 k_lo_2 = q_fma_f32(t48, 0x1.7f7d1cp-43f, t56);
          const f32 t59 = __fsub_rn(k_2, u_2);
          const f32 ul_2 = __fadd_rn(t59, r_2);
          const f32 t65 = __fadd_rn(k_lo_2, ul_2);
          const f32 t66 = q_fma_f32(t64, q_2, t65);
          const f32 log_by_table = __fadd_rn(u_2, t66);
          const f32 w = t69 ? log_by_table : in_x;
          const bool t73 = in_x == 0.0f;
          const f32 t76 = t73 ? q_from_f32(0xff800000u) : q_from_f32(0x7fc00000u);
          const f32 y_rare = t72 ? w : t76;
          y_2 = y_rare;
        }
        put_out.at[element] = q_canon_f32(y_2);
      }
      q_store_item(to_out[nth], put_out, start[nth], n0, is_streamed);
    }
  }
}
