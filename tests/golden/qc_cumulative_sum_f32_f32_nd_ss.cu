struct q_scan_2_32 {
  u64 ptr[2]; /* addresses of the first element, and of its result */
  u64 items, rows; /* items: chunks that a block has at a time; of step 2, 16 spans, of step 3, 256 rows */
  u64 flags; /* 1: the output is streamed; 2: turned; 8: the result of no elements is stored */
  u64 rank, n_axes; /* extents in use; 1, or 0 if the axis has one element */
  u64 along, chunks, spans; /* elements of the axis; its chunks of 256, its spans of 65536 */
  u64 spread_bits, step; /* chunks of a row at a time; the step that is run, 0: all */
  u64 row_pieces; /* items of a row */
  u64 piece_divisor[2], span_divisor[2]; /* of row_pieces, spans */
  u64 initial, initial_offset; /* the result of no elements: its bits; where it is, from the row's first result */
  u64 totals, ends; /* in the workspace: of chunks, of spans; then what comes before each */
  i64 n[32]; /* extents: the axis, then what is kept */
  i64 stride[2][32]; /* in bytes */
  u64 divisor[32][2]; /* of n[0], n[1], ... */
};

struct q_by_cumulative_sum_f32 {
  typedef f32 T;
  static Q_FN T of(T a, T b) {
    const f32 t3 = __fadd_rn(a, b);
    return t3;
  }
};

/* cumulative_sum: (dsl/scan.lua:5, templates/cuda/scan.cu.in) */
extern "C" __global__ void __launch_bounds__(256, 2) qc_cumulative_sum_f32_f32_nd_ss(const __grid_constant__ q_scan_2_32 args) {
  /* A block has 16 chunks of 256 elements at a time, its slots: of one row, or of 2, 4, 8 or 16. A thread has a segment of 16. A launch
   * does all of a row's work, or a step of it: 1, the totals of chunks; 2, what comes before each chunk of a span, and the totals of spans;
   * 3, what comes before each span; 4, the results. */
  const u32 thread = threadIdx.y * blockDim.x + threadIdx.x, slot = thread / 16, segment = thread % 16;
  const u32 spread_bits = (u32)args.spread_bits, spread = 1u << spread_bits, tile_rows = 16u >> spread_bits, step = (u32)args.step;
  const bool is_streamed = ((u32)args.flags & 1) != 0, is_turned = ((u32)args.flags & 2) != 0;
  const u32 n = (u32)args.along, chunks = (u32)args.chunks, spans = (u32)args.spans;
  f32 *const totals = (f32 *)args.totals, *const ends = (f32 *)args.ends;
  __shared__ f32 held[16 * 272]; /* a segment has 17 places, which avoids bank conflicts */
  __shared__ f32 end[256], total[16], of_span[16], before_span[16];
  __shared__ u64 from[16], to[16];
  for (u32 item = blockIdx.x; item < (u32)args.items; item += gridDim.x) {
    if (step == 3) { /* a thread has a row */
      const u32 row = item * 256 + thread;
      f32 run = 0;
      for (u32 first = 0; row < (u32)args.rows && first < spans; first += 16) {
        f32 got[16];
#pragma unroll
        for (u32 k = 0; k < 16; k++) got[k] = first + k < spans ? ends[(u64)row * spans + first + k] : 0;
#pragma unroll
        for (u32 k = 0; k < 16; k++) {
          if (first + k >= spans) continue;
          ends[(u64)row * spans + first + k] = run;
          run = first + k ? q_by_cumulative_sum_f32::of(run, got[k]) : got[k];
        }
      }
      continue;
    }
    if (step == 2) { /* a slot has a span */
      for (u32 k = 0; k < 16; k++) {
        const u32 span = item * 16 + k, row = q_fast_divide(span, args.span_divisor), chunk = (span - row * spans) * 256 + thread;
        if (row < (u32)args.rows && chunk < chunks) held[k * 272 + thread] = totals[(u64)row * chunks + chunk];
      }
      __syncthreads();
      if (segment == 0) {
        const u32 span = item * 16 + slot, row = q_fast_divide(span, args.span_divisor), first = (span - row * spans) * 256;
        f32 run = held[slot * 272];
        for (u32 k = 1; row < (u32)args.rows && k < 256 && first + k < chunks; k++) {
          const f32 next = held[slot * 272 + k];
          held[slot * 272 + k] = run;
          run = q_by_cumulative_sum_f32::of(run, next);
        }
        if (row < (u32)args.rows) ends[span] = run;
      }
      __syncthreads();
      for (u32 k = 0; k < 16; k++) {
        const u32 span = item * 16 + k, row = q_fast_divide(span, args.span_divisor), chunk = (span - row * spans) * 256 + thread;
        if (row < (u32)args.rows && chunk < chunks && thread) totals[(u64)row * chunks + chunk] = held[k * 272 + thread];
      }
      __syncthreads();
      continue;
    }
    const u32 tile = q_fast_divide(item, args.piece_divisor), piece = item - tile * (u32)args.row_pieces;
    const u32 own_row = tile * tile_rows + (slot >> spread_bits);
    const bool is_row = own_row < (u32)args.rows;
    if (segment == 0) {
      u32 rest = is_row ? own_row : 0;
      u64 row_in = args.ptr[0], row_out = args.ptr[1];
      for (u32 dim = (u32)args.n_axes; dim < (u32)args.rank; dim++) {
        const u32 next = q_fast_divide(rest, args.divisor[dim]), index = rest - next * (u32)args.n[dim];
        rest = next;
        row_in += q_offset(index, args.stride[0][dim]);
        row_out += q_offset(index, args.stride[1][dim]);
      }
      from[slot] = row_in;
      to[slot] = row_out;
      const bool is_first = (slot & (spread - 1)) == 0 && piece == 0 && (step == 0 || step == 4);
      if (((u32)args.flags & 8) != 0 && is_row && is_first) /* the result of no elements */
        qc_store1(row_out + args.initial_offset, q_scalar<f32>(args.initial), is_streamed);
    }
    __syncthreads();
    f32 of_chunk = 0, of_whole = 0; /* carries of the slots of a row, of its first slot's thread */
    for (u32 first_chunk = piece * spread; first_chunk < chunks; first_chunk += spread) {
      for (u32 k = 0; k < 16; k++) { /* neighbours in memory: the elements of a chunk, or, turned, the rows */
        const u32 nth = k * 256 + thread, nth_row = nth & (tile_rows - 1), behind = nth / tile_rows;
        const u32 at_slot = is_turned ? (nth_row << spread_bits) + behind / 256 : k, place = is_turned ? behind % 256 : thread;
        const u32 i = (first_chunk + (at_slot & (spread - 1))) * 256 + place;
        if (i >= n || tile * tile_rows + (at_slot >> spread_bits) >= (u32)args.rows) continue;
        const f32 got = qc_load1<f32>(from[at_slot] + q_offset(i, args.stride[0][0]));
        const f32 in_x = got;
        held[at_slot * 272 + place / 16 * 17 + place % 16] = in_x;
      }
      __syncthreads();
      const u32 chunk = first_chunk + (slot & (spread - 1)), first = chunk * 256 + segment * 16;
      f32 v[16];
#pragma unroll
      for (u32 k = 0; k < 16; k++) {
        if (!is_row || first + k >= n) continue;
        v[k] = held[slot * 272 + segment * 17 + k];
        if (k) v[k] = q_by_cumulative_sum_f32::of(v[k - 1], v[k]);
      }
      end[thread] = is_row && first + 15 < n ? v[15] : 0;
      __syncthreads();
      if (segment == 0) { /* what comes before each segment of the chunk */
        f32 run = end[thread];
        for (u32 k = 1; k < 16; k++) {
          const f32 next = end[thread + k];
          end[thread + k] = run;
          if (chunk * 256 + k * 16 + 15 < n) run = q_by_cumulative_sum_f32::of(run, next);
        }
        total[slot] = run;
        if (step == 1 && is_row && chunk < chunks) totals[(u64)own_row * chunks + chunk] = run;
      }
      __syncthreads();
      if (step == 1) break;
      if (step == 4 && segment == 0 && is_row && chunk < chunks) {
        if (chunk % 256) of_span[slot] = totals[(u64)own_row * chunks + chunk];
        if (chunk >= 256) before_span[slot] = ends[(u64)own_row * spans + chunk / 256];
      }
      if (step == 0 && segment == 0 && (slot & (spread - 1)) == 0) { /* what comes before each chunk */
        for (u32 k = 0; k < spread && first_chunk + k < chunks; k++) {
          const u32 nth = first_chunk + k;
          f32 run = total[slot + k];
          of_span[slot + k] = of_chunk;
          before_span[slot + k] = of_whole;
          if (nth % 256) run = q_by_cumulative_sum_f32::of(of_chunk, run);
          of_chunk = run;
          if (nth % 256 == 255) of_whole = nth >= 256 ? q_by_cumulative_sum_f32::of(of_whole, run) : run;
        }
      }
      __syncthreads();
#pragma unroll
      for (u32 k = 0; k < 16; k++) {
        if (!is_row || first + k >= n) continue;
        if (segment) v[k] = q_by_cumulative_sum_f32::of(end[thread], v[k]);
        if (chunk % 256) v[k] = q_by_cumulative_sum_f32::of(of_span[slot], v[k]);
        if (chunk >= 256) v[k] = q_by_cumulative_sum_f32::of(before_span[slot], v[k]);
        held[slot * 272 + segment * 17 + k] = v[k];
      }
      __syncthreads();
      for (u32 k = 0; k < 16; k++) {
        const u32 nth = k * 256 + thread, nth_row = nth & (tile_rows - 1), behind = nth / tile_rows;
        const u32 at_slot = is_turned ? (nth_row << spread_bits) + behind / 256 : k, place = is_turned ? behind % 256 : thread;
        const u32 i = (first_chunk + (at_slot & (spread - 1))) * 256 + place;
        if (i >= n || tile * tile_rows + (at_slot >> spread_bits) >= (u32)args.rows) continue;
        const f32 v1 = held[at_slot * 272 + place / 16 * 17 + place % 16];
        qc_store1(to[at_slot] + q_offset(i, args.stride[1][0]), q_canon_f32(v1), is_streamed);
      }
      __syncthreads();
      if (step == 4) break;
    }
    __syncthreads();
  }
}
