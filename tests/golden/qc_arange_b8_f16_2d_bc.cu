struct q_args_2_2_3 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, row_items; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 rank; /* extents in use */
  i64 n[2]; /* extents, inner first */
  i64 stride[2][2]; /* in bytes */
  u64 divisor[2][2]; /* of row_items, n[1], n[2]...: see q_fast_divide */
  u64 param[3]; /* each in its first bytes */
};

/* arange: floating: fma(index, step, start); integer: start + index * step (dsl/index.lua:7, */
/* templates/cuda/elementwise.cu.in) */
/* An item is 8 elements of a row; 4 items per thread. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_arange_b8_f16_2d_bc(const __grid_constant__ q_args_2_2_3 args) {
  const u32 n0 = (u32)args.n[0], items = (u32)args.items;
  const u32 block = (u32)blockDim.x, grid_stride = (u32)gridDim.x * block * 4;
  const bool is_streamed = ((u32)args.flags & 1) != 0;
  u32 first = (u32)blockIdx.x * block * 4 + threadIdx.x;
  if (first >= items) return;
  const f64 p_start = q_from_f64(args.param[0]);
  const f64 p_step = q_from_f64(args.param[1]);
  for (; first < items; first += grid_stride) {
    u32 start[4]; /* of the items in their rows; n0: no item */
    u64 from_index[4];
    u64 to_out[4];
#pragma unroll
    for (u32 nth = 0; nth < 4; nth++) {
      const u32 item = first + nth * block;
      const u32 row = q_fast_divide(item, args.divisor[0]), i = item - row * (u32)args.row_items;
      const u64 row_index = args.ptr[0] + q_offset(row, args.stride[0][1]);
      const u64 row_out = args.ptr[1] + q_offset(row, args.stride[1][1]);
      /* items begin where output 0 is aligned */
      const u32 phase = (u32)((u64)row_out / 2 % 8);
      start[nth] = item < items ? i * 8 - phase : n0;
      from_index[nth] = row_index;
      to_out[nth] = row_out;
    }
#pragma unroll
    for (u32 nth = 0; nth < 4; nth++) {
      qc_vec<f16_s, 8> put_out;
#pragma unroll
      for (u32 element = 0; element < 8; element++) {
        const f64 in_index = q_cast_i64_f64((i64)(from_index[nth] + q_offset(start[nth] + element, args.stride[0][0])));
        const f64 t5 = q_fma_f64(in_index, p_step, p_start);
        put_out.at[element] = q_cast_f64_f16(t5);
      }
      q_store_item(to_out[nth], put_out, start[nth], n0, is_streamed);
    }
  }
}
