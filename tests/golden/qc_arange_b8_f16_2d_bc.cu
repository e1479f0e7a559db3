struct q_args_2_2_3 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 slots, row_slots; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: ptr[k] holds the bits of input k, which is one value */
  u64 rank; /* extents in use */
  i64 n[2]; /* extents, inner first */
  i64 stride[2][2]; /* in bytes */
  u64 divide[2][2]; /* by row_slots, n[1], n[2]...: see q_divide */
  u64 param[3]; /* each in its first bytes */
};

/* arange: floating: fma(index, step, start); integer: start + index * step (dsl/index.lua:7, */
/* templates/cuda/elementwise.cu.in) */
/* A slot is 8 elements of a row, a turn of a thread 4 slots. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_arange_b8_f16_2d_bc(const __grid_constant__ q_args_2_2_3 a) {
  const u32 n0 = (u32)a.n[0], slots = (u32)a.slots;
  const u32 step = (u32)blockDim.x, turn = (u32)gridDim.x * step * 4;
  const bool is_streamed = ((u32)a.flags & 1) != 0;
  u32 first = (u32)blockIdx.x * step * 4 + threadIdx.x;
  if (first >= slots) return;
  const f64 p_start = q_from_f64(a.param[0]);
  const f64 p_step = q_from_f64(a.param[1]);
  for (; first < slots; first += turn) {
    u32 start[4]; /* of slots in their rows; n0: there is no such slot */
    u64 from_index[4];
    u64 to_out[4];
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
      const u32 slot = first + u * step;
      const u32 row = q_divide(slot, a.divide[0]), i = slot - row * (u32)a.row_slots;
      const u64 row_index = a.ptr[0] + q_offset(row, a.stride[0][1]);
      const u64 row_out = a.ptr[1] + q_offset(row, a.stride[1][1]);
      /* slots begin where output 0 is aligned */
      const u32 phase = (u32)((u64)row_out / 2 % 8);
      start[u] = slot < slots ? i * 8 - phase : n0;
      from_index[u] = row_index;
      to_out[u] = row_out;
    }
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
      qc_vec<f16_s, 8> put_out;
#pragma unroll
      for (u32 v = 0; v < 8; v++) {
        const f64 in_index = q_cast_i64_f64((i64)(from_index[u] + q_offset(start[u] + v, a.stride[0][0])));
        const f64 t5 = q_fma_f64(in_index, p_step, p_start);
        put_out.at[v] = q_cast_f64_f16(t5);
      }
      q_store_slot(to_out[u], put_out, start[u], n0, is_streamed);
    }
  }
}
