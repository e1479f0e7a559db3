struct q_args_3_2_0 {
  u64 ptr[3]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, row_items; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 rank; /* extents in use */
  i64 n[2]; /* extents, inner first */
  i64 stride[3][2]; /* in bytes */
  u64 divisor[2][2]; /* of row_items, n[1], n[2]...: see q_fast_divide */
};

/* add: x + y (dsl/binary.lua:5, templates/cuda/elementwise.cu.in) */
/* An item is 4 elements of a row; 4 items per thread. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_add_f32_f32_f32_2d_bcc(const __grid_constant__ q_args_3_2_0 args) {
  const u32 n0 = (u32)args.n[0], items = (u32)args.items;
  const u32 block = (u32)blockDim.x, grid_stride = (u32)gridDim.x * block * 4;
  const bool is_streamed = ((u32)args.flags & 1) != 0;
  u32 first = (u32)blockIdx.x * block * 4 + threadIdx.x;
  if (first >= items) return;
  for (; first < items; first += grid_stride) {
    u32 start[4]; /* of the items in their rows; n0: no item */
    f32 got_x[4];
    qc_vec<f32, 4> got_y[4];
    u64 to_out[4];
#pragma unroll
    for (u32 nth = 0; nth < 4; nth++) {
      const u32 item = first + nth * block;
      const u32 row = q_fast_divide(item, args.divisor[0]), i = item - row * (u32)args.row_items;
      const u64 row_x = args.ptr[0] + q_offset(row, args.stride[0][1]);
      const u64 row_y = args.ptr[1] + q_offset(row, args.stride[1][1]);
      const u64 row_out = args.ptr[2] + q_offset(row, args.stride[2][1]);
      /* items begin where output 0 is aligned */
      const u32 phase = (u32)((u64)row_out / 4 % 4);
      start[nth] = item < items ? i * 4 - phase : n0;
      got_x[nth] = item < items ? q_load_element<f32>(row_x, args.ptr[0], args.flags >> 8) : (f32)0;
      q_load_item(got_y[nth], row_y, start[nth], n0);
      to_out[nth] = row_out;
    }
#pragma unroll
    for (u32 nth = 0; nth < 4; nth++) {
      qc_vec<f32, 4> put_out;
#pragma unroll
      for (u32 element = 0; element < 4; element++) {
        const f32 in_x = got_x[nth];
        const f32 in_y = got_y[nth].at[element];
        const f32 t3 = __fadd_rn(in_x, in_y);
        put_out.at[element] = q_canon_f32(t3);
      }
      q_store_item(to_out[nth], put_out, start[nth], n0, is_streamed);
    }
  }
}
