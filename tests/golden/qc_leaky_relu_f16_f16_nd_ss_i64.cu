struct q_args_2_32_1 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 slots, row_slots; /* in all, in a row */
  u64 flags; /* 1: outputs are streamed; 256 << k: ptr[k] holds the bits of input k, which is one value */
  u64 rank; /* extents in use */
  i64 n[32]; /* extents, inner first */
  i64 stride[2][32]; /* in bytes */
  u64 divide[32][2]; /* by row_slots, n[1], n[2]...: see q_divide */
  u64 param[1]; /* each in its first bytes */
};

/* leaky_relu: x > 0 ? x : slope * x (dsl/unary.lua:122, templates/cuda/elementwise.cu.in) */
/* A slot is an element, a turn of a thread 4 slots. */
extern "C" __global__ void __launch_bounds__(256, 1) qc_leaky_relu_f16_f16_nd_ss_i64(const __grid_constant__ q_args_2_32_1 a) {
  const u64 n0 = (u64)a.n[0], slots = (u64)a.slots;
  const u64 step = (u64)blockDim.x, turn = (u64)gridDim.x * step * 4;
  const bool is_streamed = ((u32)a.flags & 1) != 0;
  u64 first = (u64)blockIdx.x * step * 4 + threadIdx.x;
  if (first >= slots) return;
  const f32 p_slope = q_from_f32((u32)a.param[0]);
  for (; first < slots; first += turn) {
    u64 start[4]; /* of slots in their rows; n0: there is no such slot */
    f16_s got_x[4];
    u64 to_out[4];
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
      const u64 slot = first + u * step;
      const u64 row = q_divide(slot, a.divide[0]), i = slot - row * (u64)a.row_slots;
      u64 rest = row;
      u64 row_x = a.ptr[0];
      u64 row_out = a.ptr[1];
      for (u32 d = 1; d < (u32)a.rank; d++) {
        const u64 next = q_divide(rest, a.divide[d]), at = rest - next * (u64)a.n[d];
        rest = next;
        row_x += q_offset(at, a.stride[0][d]);
        row_out += q_offset(at, a.stride[1][d]);
      }
      start[u] = slot < slots ? i : n0;
      got_x[u] = slot < slots ? q_load_value<f16_s>(row_x + q_offset(i, a.stride[0][0]), a.ptr[0], a.flags >> 8) : (f16_s)0;
      to_out[u] = row_out + q_offset(i, a.stride[1][0]);
    }
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
      const f32 in_x = qc_f32_of_f16_s(got_x[u]);
      const bool t4 = in_x > 0.0f;
      const f32 t5 = __fmul_rn(p_slope, in_x);
      const f32 t6 = t4 ? in_x : t5;
      if (start[u] < n0) {
        qc_store1(to_out[u], q_cast_f32_f16(t6), is_streamed);
      }
    }
  }
}
