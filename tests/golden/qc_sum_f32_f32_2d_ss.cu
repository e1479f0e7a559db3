struct q_short_2_1 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, rows; /* an item is the rows that a block takes at a time, 1 << tile_bits */
  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 joined, tile_bits; /* elements of a row */
  u64 divisor[2]; /* of joined: see q_fast_divide */
  i64 stride[2][2]; /* in bytes: from element to element, from row to row */
  u64 param[1]; /* each in its first bytes */
};

struct q_by_sum_f32 {
  typedef f32 T;
  static Q_FN T of(T a, T b) {
    const f32 t3 = __fadd_rn(a, b);
    return t3;
  }
};

/* sum: sum(x) (dsl/reduction.lua:7, templates/cuda/rows_short.cu.in) */
extern "C" __global__ void __launch_bounds__(256, 1) qc_sum_f32_f32_2d_ss(const __grid_constant__ q_short_2_1 args) {
  /* Rows of a few elements: a thread has a row, and all 16 lanes of it. The threads of a block load and store its rows together. */
  const u32 thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  const u32 n = (u32)args.joined, tile_rows = 1u << (u32)args.tile_bits, pitch = n | 1; /* odd: no bank conflicts */
  const bool is_streamed = ((u32)args.flags & 1) != 0;
  const u32 pitch_x = args.stride[0][1] ? pitch : 0; /* 0: all rows are one */
  f32 *const tile_x = (f32 *)(q_shared + 0u * pitch * tile_rows);
  for (u32 item = blockIdx.x; item < (u32)args.items; item += gridDim.x) {
    const u32 first_row = item * tile_rows, rest = (u32)args.rows - first_row, n_rows = rest < tile_rows ? rest : tile_rows;
    const bool is_row = thread < n_rows;
    f32 total_0 = 0;
    q_load_tile(tile_x, args, args.stride[0], args.ptr[0], first_row, pitch_x ? n_rows : 1, pitch_x, args.flags >> 8, thread, threads);
    __syncthreads();
    {
      f32 lane_0[16] = {};
      for (u32 first = 0; is_row && first < n; first += 16) {
#pragma unroll
        for (u32 k = 0; k < 16; k++) {
          if (first + k < n) {
            const f32 got_x = tile_x[thread * pitch_x + first + k];
            const f32 in_x_1_0 = got_x;
            lane_0[k] = first == 0 ? in_x_1_0 : q_by_sum_f32::of(lane_0[k], in_x_1_0);
          }
        }
      }
      q_join_lanes<q_by_sum_f32>(lane_0, n);
      total_0 = lane_0[0];
    }
    if (is_row) {
      const f32 t4 = __fadd_rn(total_0, 0.0f);
      qc_store1(args.ptr[1] + q_offset(first_row + thread, args.stride[1][1]), q_canon_f32(t4), is_streamed);
    }
    __syncthreads();
  }
}
