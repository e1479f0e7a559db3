struct q_args_2_32_1 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, row_items; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 rank; /* extents in use */
  i64 n[32]; /* extents, inner first */
  i64 stride[2][32]; /* in bytes */
  u64 divisor[32][2]; /* of row_items, n[1], n[2]...: see q_fast_divide */
  u64 param[1]; /* each in its first bytes */
};

/* leaky_relu: x > 0 ? x : slope * x (dsl/unary.lua:122, templates/cuda/elementwise.cu.in) */
/* An item is an element; 4 items per thread. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_leaky_relu_f16_f16_nd_ss_i64(const __grid_constant__ q_args_2_32_1 args) {
  const u64 n0 = (u64)args.n[0], items = (u64)args.items;
  const u64 block = (u64)blockDim.x, grid_stride = (u64)gridDim.x * block * 4;
  const bool is_streamed = ((u32)args.flags & 1) != 0;
  u64 first = (u64)blockIdx.x * block * 4 + threadIdx.x;
  if (first >= items) return;
  const f32 p_slope = q_from_f32((u32)args.param[0]);
  for (; first < items; first += grid_stride) {
    u64 start[4]; /* of the items in their rows; n0: no item */
    f16_s got_x[4];
    u64 to_out[4];
#pragma unroll
    for (u32 nth = 0; nth < 4; nth++) {
      const u64 item = first + nth * block;
      const u64 row = q_fast_divide(item, args.divisor[0]), i = item - row * (u64)args.row_items;
      u64 rest = row;
      u64 row_x = args.ptr[0];
      u64 row_out = args.ptr[1];
      for (u32 dim = 1; dim < (u32)args.rank; dim++) {
        const u64 next = q_fast_divide(rest, args.divisor[dim]), index = rest - next * (u64)args.n[dim];
        rest = next;
        row_x += q_offset(index, args.stride[0][dim]);
        row_out += q_offset(index, args.stride[1][dim]);
      }
      start[nth] = item < items ? i : n0;
      got_x[nth] = item < items ? q_load_element<f16_s>(row_x + q_offset(i, args.stride[0][0]), args.ptr[0], args.flags >> 8) : (f16_s)0;
      to_out[nth] = row_out + q_offset(i, args.stride[1][0]);
    }
#pragma unroll
    for (u32 nth = 0; nth < 4; nth++) {
      const f32 in_x = qc_f32_of_f16_s(got_x[nth]);
      const bool t4 = in_x > 0.0f;
      const f32 t5 = __fmul_rn(p_slope, in_x);
      const f32 t6 = t4 ? in_x : t5;
      if (start[nth] < n0) {
        qc_store1(to_out[nth], q_cast_f32_f16(t6), is_streamed);
      }
    }
  }
}
