struct q_rows_2_32_1 {
  u64 ptr[2]; /* addresses of the operands' first elements, inputs before outputs */
  u64 items, rows; /* an item is the rows that a block takes at a time */
  u64 flags; /* 1: outputs are streamed; 2: turned; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */
  u64 rank, n_joined, n_reduced; /* extents in use; of these, the joined axes, and all axes */
  u64 joined, chunks, leaves; /* elements of the joined axes; their chunks; those of a row */
  u64 spread_bits;
  u64 chunk_divisor[2]; /* of chunks: see q_fast_divide */
  u64 stage, step; /* of a row cut into pieces: the stage that is run, from 1, and the step of it; 0: all stages */
  u64 unit_bits, units; /* a group has 1 << unit_bits units of an axis, of so many */
  u64 unit_leaves, end_dim, outer_leaves; /* leaves of a unit; the axis after it; leaves of all its units */
  u64 row_pieces, unit_pieces, span; /* pieces of a row, of all units; elements that a lane's presence counts a unit for */
  u64 piece_divisor[2], unit_divisor[2]; /* of row_pieces, unit_pieces */
  u64 values, nodes, joined_nodes, room, joined_room; /* in the workspace: row values, nodes to read and to write, room for them */
  u64 kept; /* leaves of a group: their elements stay in shared memory */
  i64 n[32]; /* extents: the joined axes, inner first, the further axes, then what is kept */
  i64 stride[2][32]; /* in bytes */
  u64 divisor[32][2]; /* of n[0], n[1], ... */
  u64 param[1]; /* each in its first bytes */
};

struct q_by_sum_f32 {
  typedef f32 T;
  static Q_FN T of(T a, T b) {
    const f32 t3 = __fadd_rn(a, b);
    return t3;
  }
};

/* sum: sum(x) (dsl/reduction.lua:7, templates/cuda/rows.cu.in) */
extern "C" __global__ void __launch_bounds__(256, 1) qc_sum_f32_f32_nd_ss(const __grid_constant__ q_rows_2_32_1 args) {
  /* Groups of 16 threads, one of each lane; 1 << spread_bits groups share a row. Turned: neighbouring threads have neighbouring rows. */
  const u32 thread = threadIdx.y * blockDim.x + threadIdx.x, groups = blockDim.x * blockDim.y / 16;
  const u32 spread_bits = (u32)args.spread_bits, spread = 1u << spread_bits, tile_rows = groups >> spread_bits;
  const bool is_turned = ((u32)args.flags & 2) != 0, is_streamed = ((u32)args.flags & 1) != 0;
  const u32 lane = is_turned ? thread / groups : thread % 16, group = is_turned ? thread % groups : thread / 16;
  const u32 tile_row = group >> spread_bits, part = group & (spread - 1);
  const u32 at_lane = is_turned ? groups : 1, at_group = is_turned ? 1 : 16, at = lane * at_lane + group * at_group;
  /* A group has a range of its own, or takes every `spread`-th leaf. A launch runs all stages, or a step of one: 0, it reduces ranges of
   * rows to nodes; 1, nodes to fewer; 2, to results. */
  const bool is_own = ((u32)args.flags & 4) != 0;
  const u32 stage = (u32)args.stage, step = (u32)args.step;
  const u32 of_stack = is_own ? groups : tile_rows, stack = is_own ? group : tile_row;
  const u32 at_waiting = is_turned ? lane * of_stack + stack : stack * 16 + lane;
  const u32 n = (u32)args.joined, leaves = (u32)args.leaves, units = (u32)args.units;
  __shared__ f32 node_0_f32[512], waiting_0_f32[128 * 16];
  for (u32 item = blockIdx.x; item < (u32)args.items; item += gridDim.x) {
    const u32 tile = q_fast_divide(item, args.piece_divisor), of_row = item - tile * (u32)args.row_pieces;
    const u32 outer = q_fast_divide(of_row, args.unit_divisor), piece = of_row - outer * (u32)args.unit_pieces;
    const u32 row = tile * tile_rows + tile_row;
    const bool is_row = row < (u32)args.rows;
    q_range<u32> range = {0, units, 0, leaves, (u32)args.end_dim};
    if (is_own) {
      const u32 first = ((piece << spread_bits) + part) << args.unit_bits, end = first + ((u32)1 << args.unit_bits);
      range.first = first < units ? first : units;
      range.end = end < units ? end : units;
      range.leaf = outer * (u32)args.outer_leaves + range.first * (u32)args.unit_leaves;
      range.last = outer * (u32)args.outer_leaves + range.end * (u32)args.unit_leaves;
    }
    f32 total_0 = 0;
    u64 row_x = args.ptr[0];
    f32 got_x[16];
    u64 row_out = args.ptr[1];
    u32 rest = is_row ? row : 0;
    for (u32 dim = (u32)args.n_reduced; dim < (u32)args.rank; dim++) {
      const u32 next = q_fast_divide(rest, args.divisor[dim]), index = rest - next * (u32)args.n[dim];
      rest = next;
      row_x += q_offset(index, args.stride[0][dim]);
      row_out += q_offset(index, args.stride[1][dim]);
    }
    if (!stage || stage == 1) {
      q_tree<q_by_sum_f32> tree_0 = {waiting_0_f32 + at_waiting, of_stack * 16, 0, 0, false};
      for (u32 first_leaf = range.leaf; step == 0 && first_leaf < range.last; first_leaf += is_own ? 1 : spread) {
        const u32 leaf = is_own ? first_leaf : first_leaf + part, segment = q_segment_of(args, leaf), first = q_chunk_of(args, leaf, segment) * 256 + lane;
        f32 sum_0 = 0;
        if (is_row && leaf < leaves && first < n) {
          u64 to_x = row_x;
          u32 behind = segment;
          for (u32 dim = (u32)args.n_joined; dim < (u32)args.n_reduced; dim++) {
            const u32 next = q_fast_divide(behind, args.divisor[dim]), index = behind - next * (u32)args.n[dim];
            behind = next;
            to_x += q_offset(index, args.stride[0][dim]);
          }
          q_load_run(got_x, args, args.stride[0], to_x, first, n, args.ptr[0], args.flags >> 8);
#pragma unroll
          for (u32 k = 0; k < 16; k++) {
            if (first + 16 * k >= n) continue;
            const f32 in_x_1_0 = got_x[k];
            sum_0 = k == 0 ? in_x_1_0 : q_by_sum_f32::of(sum_0, in_x_1_0);
          }
        }
        if (is_own) {
          if (is_row) {
            tree_0.take(args, range, leaf, lane, sum_0);
          }
          continue;
        }
        node_0_f32[at] = sum_0;
        __syncthreads();
        for (u32 k = 0; k < spread && first_leaf + k < leaves && is_row && part == 0; k++) {
          tree_0.take(args, range, first_leaf + k, lane, node_0_f32[at + k * at_group]);
        }
        __syncthreads();
      }
      for (u32 i = range.first; step != 0 && is_row && i < range.end; i += 8) { /* 8 nodes are one of theirs, 3 levels above */
        f32 from_0[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++)
          from_0[k] = i + k < range.end ? *q_node_at<f32>(args.nodes, args.room, 0u, (u64)row * units + i + k, lane) : 0;
#pragma unroll
        for (u32 half = 1; half < 8; half *= 2)
#pragma unroll
          for (u32 k = 0; k < 8; k += 2 * half)
            if (i + k + half < range.end && (i + k + half) * (u32)args.span + lane < n)
              from_0[k] = q_by_sum_f32::of(from_0[k], from_0[k + half]);
        tree_0.put((i - range.first) / 8, i + 8 >= range.end, i * (u32)args.span + lane < n, from_0[0]);
      }
      if (is_own && spread > 1) { /* the nodes of the groups of a row */
        node_0_f32[at] = tree_0.top;
        for (u32 half = 1; half < spread; half *= 2) {
          __syncthreads();
          const u32 right = (((piece << spread_bits) + part) + half) << args.unit_bits;
          if ((part & (2 * half - 1)) != 0 || right >= units || right * (u32)args.span + lane >= n) continue;
          node_0_f32[at] = q_by_sum_f32::of(node_0_f32[at], node_0_f32[at + half * at_group]);
        }
        tree_0.top = node_0_f32[at];
      }
      if (stage && step != 2) {
        if (is_row && part == 0)
          *q_node_at<f32>(args.joined_nodes, args.joined_room, 0u, (u64)row * args.row_pieces + of_row, lane) = tree_0.top;
        __syncthreads();
        continue;
      }
      /* The lanes last. */
      if (part == 0) {
        node_0_f32[at] = tree_0.top;
      }
      for (u32 half = 8; half > 0; half /= 2) {
        __syncthreads();
        if (part != 0 || lane >= half || lane + half >= n) continue;
        node_0_f32[at] = q_by_sum_f32::of(node_0_f32[at], node_0_f32[at + half * at_lane]);
      }
      __syncthreads();
      total_0 = leaves ? node_0_f32[(group - part) * at_group] : 0.0f;
      if (stage && is_row && part == 0 && lane == 0) *(f32 *)(args.values + ((u64)row * 1 + 0) * 8) = total_0;
      __syncthreads();
    } else if (stage > 1) {
      if (is_row && step != 1) total_0 = *(const f32 *)(args.values + ((u64)row * 1 + 0) * 8);
    }
    if (is_row && part == 0 && lane == 0 && (!stage || (stage == 1 && step == 2))) {
      const f32 t4 = __fadd_rn(total_0, 0.0f);
      qc_store1(row_out, q_canon_f32(t4), is_streamed);
    }
  }
}
