struct q_args_3_3_0 {
  u64 ptr[3]; /* addresses of the operands' first elements, inputs before outputs */
  u64 slots, row_slots; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: ptr[k] holds the bits of input k, which is one value */
  u64 rank; /* extents in use */
  i64 n[3]; /* extents, inner first */
  i64 stride[3][3]; /* in bytes */
  u64 divide[3][2]; /* by row_slots, n[1], n[2]...: see q_divide */
};

/* add: x + y (dsl/binary.lua:5, templates/cuda/transpose.cu.in) */
/* Blocks of 32 x 8 threads; a slot is a tile of 32 x 64 elements. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_add_f32_f32_f32_3d_tbc(const __grid_constant__ q_args_3_3_0 a) {
  const u32 n0 = (u32)a.n[0], n1 = (u32)a.n[1], slots = (u32)a.slots;
  const bool is_streamed = ((u32)a.flags & 1) != 0;
  /* [place along dimension 0][along dimension 1]; with a word more in a row, no bank serves two threads */
  __shared__ f32 tile_x[32][65];
  for (u32 slot = blockIdx.x; slot < slots; slot += gridDim.x) {
    const u32 rows = q_divide(slot, a.divide[0]), i0 = (slot - rows * (u32)a.row_slots) * 32;
    u32 rest = q_divide(rows, a.divide[1]);
    const u32 j0 = (rows - rest * ((n1 + 64 - 1) / 64)) * 64;
    u64 row_x = a.ptr[0];
    u64 row_y = a.ptr[1];
    u64 row_out = a.ptr[2];
    for (u32 d = 2; d < (u32)a.rank; d++) {
      const u32 next = q_divide(rest, a.divide[d]), at = rest - next * (u32)a.n[d];
      rest = next;
      row_x += q_offset(at, a.stride[0][d]);
      row_y += q_offset(at, a.stride[1][d]);
      row_out += q_offset(at, a.stride[2][d]);
    }
    /* Threads side by side read along dimension 1: all of it is on its way before any is used. */
    f32 turned_x[8];
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
      const u32 i = i0 + threadIdx.y + u / 2 * 8, j = j0 + threadIdx.x + u % 2 * 32;
      const bool is_inside = i < n0 && j < n1;
      turned_x[u] = is_inside ? qc_load1<f32>(row_x + q_offset(i, a.stride[0][0]) + q_offset(j, 4)) : (f32)0;
    }
    f32 got_y[8];
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
      const u32 i = i0 + threadIdx.x, j = j0 + threadIdx.y + u * 8;
      const bool is_inside = i < n0 && j < n1;
      got_y[u] = is_inside ? q_load_value<f32>(row_y + q_offset(j, a.stride[1][1]), a.ptr[1], a.flags >> 9) : (f32)0;
    }
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
      tile_x[threadIdx.y + u / 2 * 8][threadIdx.x + u % 2 * 32] = turned_x[u];
    }
    __syncthreads();
    /* They write along dimension 0. */
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
      const u32 i = i0 + threadIdx.x, j = j0 + threadIdx.y + u * 8;
      if (i < n0 && j < n1) {
        const f32 in_x = tile_x[threadIdx.x][threadIdx.y + u * 8];
        const f32 in_y = got_y[u];
        const f32 t3 = __fadd_rn(in_x, in_y);
        qc_store1(row_out + q_offset(i, 4) + q_offset(j, a.stride[2][1]), q_canon_f32(t3), is_streamed);
      }
    }
    __syncthreads();
  }
}
