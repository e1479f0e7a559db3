struct q_args_3_3_0 {
  u64 ptr[3]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, row_items; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 rank; /* extents in use */
  i64 n[3]; /* extents, inner first */
  i64 stride[3][3]; /* in bytes */
  u64 divisor[3][2]; /* of row_items, n[1], n[2]...: see q_fast_divide */
};

/* add: x + y (dsl/binary.lua:5, templates/cuda/transpose.cu.in) */
/* Blocks of 32 x 8 threads; an item is a tile of 32 x 64 elements. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_add_f32_f32_f32_3d_tbc(const __grid_constant__ q_args_3_3_0 args) {
  const u32 n0 = (u32)args.n[0], n1 = (u32)args.n[1], items = (u32)args.items;
  const bool is_streamed = ((u32)args.flags & 1) != 0;
  /* [index along dimension 0][along dimension 1]; the pitch is a word longer than a row: no bank conflicts */
  __shared__ f32 tile_x[32][65];
  for (u32 item = blockIdx.x; item < items; item += gridDim.x) {
    const u32 rows = q_fast_divide(item, args.divisor[0]), i0 = (item - rows * (u32)args.row_items) * 32;
    u32 rest = q_fast_divide(rows, args.divisor[1]);
    const u32 j0 = (rows - rest * ((n1 + 64 - 1) / 64)) * 64;
    u64 row_x = args.ptr[0];
    u64 row_y = args.ptr[1];
    u64 row_out = args.ptr[2];
    for (u32 dim = 2; dim < (u32)args.rank; dim++) {
      const u32 next = q_fast_divide(rest, args.divisor[dim]), index = rest - next * (u32)args.n[dim];
      rest = next;
      row_x += q_offset(index, args.stride[0][dim]);
      row_y += q_offset(index, args.stride[1][dim]);
      row_out += q_offset(index, args.stride[2][dim]);
    }
    /* Tiled inputs: neighbouring threads read along dimension 1. All loads are issued before the first is used. */
    f32 loaded_x[8];
#pragma unroll
    for (u32 nth = 0; nth < 8; nth++) {
      const u32 i = i0 + threadIdx.y + nth / 2 * 8, j = j0 + threadIdx.x + nth % 2 * 32;
      const bool is_inside = i < n0 && j < n1;
      loaded_x[nth] = is_inside ? qc_load1<f32>(row_x + q_offset(i, args.stride[0][0]) + q_offset(j, 4)) : (f32)0;
    }
    f32 got_y[8];
#pragma unroll
    for (u32 nth = 0; nth < 8; nth++) {
      const u32 i = i0 + threadIdx.x, j = j0 + threadIdx.y + nth * 8;
      const bool is_inside = i < n0 && j < n1;
      got_y[nth] = is_inside ? q_load_element<f32>(row_y + q_offset(j, args.stride[1][1]), args.ptr[1], args.flags >> 9) : (f32)0;
    }
#pragma unroll
    for (u32 nth = 0; nth < 8; nth++) {
      tile_x[threadIdx.y + nth / 2 * 8][threadIdx.x + nth % 2 * 32] = loaded_x[nth];
    }
    __syncthreads();
    /* Neighbouring threads write along dimension 0. */
#pragma unroll
    for (u32 nth = 0; nth < 8; nth++) {
      const u32 i = i0 + threadIdx.x, j = j0 + threadIdx.y + nth * 8;
      if (i < n0 && j < n1) {
        const f32 in_x = tile_x[threadIdx.x][threadIdx.y + nth * 8];
        const f32 in_y = got_y[nth];
        const f32 t3 = __fadd_rn(in_x, in_y);
        qc_store1(row_out + q_offset(i, 4) + q_offset(j, args.stride[2][1]), q_canon_f32(t3), is_streamed);
      }
    }
    __syncthreads();
  }
}
