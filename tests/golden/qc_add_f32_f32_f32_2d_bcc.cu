struct q_args_3_2_0 {
  u64 ptr[3]; /* addresses of the operands' first elements, inputs before outputs */
  u64 slots, row_slots; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: ptr[k] holds the bits of input k, which is one value */
  u64 rank; /* extents in use */
  i64 n[2]; /* extents, inner first */
  i64 stride[3][2]; /* in bytes */
  u64 divide[2][2]; /* by row_slots, n[1], n[2]...: see q_divide */
};

/* add: x + y (dsl/binary.lua:5, templates/cuda/elementwise.cu.in) */
/* A slot is 4 elements of a row, a turn of a thread 4 slots. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_add_f32_f32_f32_2d_bcc(const __grid_constant__ q_args_3_2_0 a) {
  const u32 n0 = (u32)a.n[0], slots = (u32)a.slots;
  const u32 step = (u32)blockDim.x, turn = (u32)gridDim.x * step * 4;
  const bool is_streamed = ((u32)a.flags & 1) != 0;
  u32 first = (u32)blockIdx.x * step * 4 + threadIdx.x;
  if (first >= slots) return;
  for (; first < slots; first += turn) {
    u32 start[4]; /* of slots in their rows; n0: there is no such slot */
    f32 got_x[4];
    qc_vec<f32, 4> got_y[4];
    u64 to_out[4];
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
      const u32 slot = first + u * step;
      const u32 row = q_divide(slot, a.divide[0]), i = slot - row * (u32)a.row_slots;
      const u64 row_x = a.ptr[0] + q_offset(row, a.stride[0][1]);
      const u64 row_y = a.ptr[1] + q_offset(row, a.stride[1][1]);
      const u64 row_out = a.ptr[2] + q_offset(row, a.stride[2][1]);
      /* slots begin where output 0 is aligned */
      const u32 phase = (u32)((u64)row_out / 4 % 4);
      start[u] = slot < slots ? i * 4 - phase : n0;
      got_x[u] = slot < slots ? q_load_value<f32>(row_x, a.ptr[0], a.flags >> 8) : (f32)0;
      q_load_slot(got_y[u], row_y, start[u], n0);
      to_out[u] = row_out;
    }
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
      qc_vec<f32, 4> put_out;
#pragma unroll
      for (u32 v = 0; v < 4; v++) {
        const f32 in_x = got_x[u];
        const f32 in_y = got_y[u].at[v];
        const f32 t3 = __fadd_rn(in_x, in_y);
        put_out.at[v] = q_canon_f32(t3);
      }
      q_store_slot(to_out[u], put_out, start[u], n0, is_streamed);
    }
  }
}
