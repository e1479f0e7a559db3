/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_rows.h: how a CUDA kernel reduces rows in the order of docs/internals/reductions.md. Its text follows that of kernel_items.h
   in files with such kernels. X is the type that a kernel counts in, A the struct of its arguments. A chunk is 256 successive elements
   of the joined axes, of which a lane has 16, a run. A leaf is a chunk at one index of the further axes, a segment. */
#ifndef QUERN_KERNEL_ROWS_H
#define QUERN_KERNEL_ROWS_H

/* The shared memory that a launch asks for, as its arguments say. */
#if !defined(QC_HOST)
extern __shared__ __align__(16) char q_shared[];
#endif

/* The offset in bytes of element i of the joined axes. */
template <typename A, typename X, int R> Q_FN i64 q_joined_offset(const A &args, const i64 (&stride)[R], X i) {
  i64 offset = 0;
  for (u32 dim = 0; dim + 1 < (u32)args.n_joined; dim++) {
    const X next = q_fast_divide(i, args.divisor[dim]);
    offset += q_offset(i - next * (X)args.n[dim], stride[dim]);
    i = next;
  }
  return offset + q_offset(i, stride[args.n_joined ? (u32)args.n_joined - 1 : 0]);
}

/* Loads a lane's run: elements first, first + 16, ... of the joined axes, those below n. The rest is 0. value: bits of a by-value
   scalar, if bit 0 of is_value is set. */
template <typename T, typename A, typename X, int R>
Q_FN void q_load_run(T (&to)[16], const A &args, const i64 (&stride)[R], u64 from, X first, X n, u64 value, u64 is_value) {
  const i64 step = 16 * stride[0];
  const bool is_plain = args.n_joined <= 1;
  if (is_plain) from += q_offset(first, stride[0]);
  if (is_value & 1) {
#pragma unroll
    for (u32 k = 0; k < 16; k++) to[k] = q_scalar<T>(value);
  } else if (is_plain && n - first > 240) {
#pragma unroll
    for (u32 k = 0; k < 16; k++) to[k] = qc_load1<T>(from + k * step);
  } else if (is_plain) {
#pragma unroll
    for (u32 k = 0; k < 16; k++) to[k] = first + 16 * k < n ? qc_load1<T>(from + k * step) : (T)0;
  } else {
#pragma unroll
    for (u32 k = 0; k < 16; k++)
      to[k] = first + 16 * k < n ? qc_load1<T>(from + q_joined_offset(args, stride, first + 16 * k)) : (T)0;
  }
}

/* A thread's run of a leaf in shared memory, which no other thread reads. threads: of the block; `nth`: the leaf, of those of a group. */
template <typename T> Q_FN void q_put_run(const T (&run)[16], T *kept, u32 nth, u32 threads) {
#pragma unroll
  for (u32 k = 0; k < 16; k++) kept[(nth * 16 + k) * threads] = run[k];
}
template <typename T> Q_FN void q_get_run(T (&run)[16], const T *kept, u32 nth, u32 threads) {
#pragma unroll
  for (u32 k = 0; k < 16; k++) run[k] = kept[(nth * 16 + k) * threads];
}

/* An element of a tile of short rows, n_rows of them: number i in an order in which neighbours are neighbours in memory. False: there is
   no such element. */
template <typename A> Q_FN bool q_place_in_tile(const A &args, const i64 (&stride)[2], u32 i, u32 n_rows, u32 &row, u32 &place) {
  const i64 along = stride[0] < 0 ? -stride[0] : stride[0], across = stride[1] < 0 ? -stride[1] : stride[1];
  if (across < along && n_rows > 1) {
    row = i & ((1u << (u32)args.tile_bits) - 1);
    place = i >> (u32)args.tile_bits;
  } else {
    row = q_fast_divide(i, args.divisor);
    place = i - row * (u32)args.joined;
  }
  return row < n_rows && place < (u32)args.joined;
}
template <typename A> Q_FN u32 q_tile_size(const A &args, u32 n_rows) { return (u32)args.joined << (n_rows > 1 ? (u32)args.tile_bits : 0); }

/* Loads a tile of rows, all threads of a block together; in shared memory rows are `pitch` elements apart. value: see q_load_run. */
template <typename T, typename A>
Q_FN void q_load_tile(T *tile, const A &args, const i64 (&stride)[2], u64 from, u32 first_row, u32 n_rows, u32 pitch, u64 is_value,
                      u32 thread, u32 threads) {
  const u32 size = q_tile_size(args, n_rows);
  for (u32 first = thread; first < size; first += 8 * threads) {
    T got[8];
    u32 at[8];
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
      u32 row, place;
      at[k] = 0xffffffffu;
      if (!q_place_in_tile(args, stride, first + k * threads, n_rows, row, place)) continue;
      at[k] = row * pitch + place;
      if (is_value & 1) got[k] = q_scalar<T>(from);
      else got[k] = qc_load1<T>(from + q_offset(first_row + row, stride[1]) + q_offset(place, stride[0]));
    }
#pragma unroll
    for (u32 k = 0; k < 8; k++)
      if (at[k] != 0xffffffffu) tile[at[k]] = got[k];
  }
}

/* Stores one likewise. */
template <typename T, typename A>
Q_FN void q_store_tile(const T *tile, const A &args, const i64 (&stride)[2], u64 to, u32 first_row, u32 n_rows, u32 pitch, bool streamed,
                       u32 thread, u32 threads) {
  const u32 size = q_tile_size(args, n_rows);
  for (u32 i = thread; i < size; i += threads) {
    u32 row, place;
    if (q_place_in_tile(args, stride, i, n_rows, row, place))
      qc_store1(to + q_offset(first_row + row, stride[1]) + q_offset(place, stride[0]), tile[row * pitch + place], streamed);
  }
}

/* The lanes of a row of n elements, last, in the order of the law: the result is in the first. */
template <typename By, u32 HALF> Q_FN void q_join_half(typename By::T (&lane)[16], u32 n) {
#pragma unroll
  for (u32 k = 0; k < HALF; k++)
    if (k + HALF < n) lane[k] = By::of(lane[k], lane[k + HALF]);
}
template <typename By> Q_FN void q_join_lanes(typename By::T (&lane)[16], u32 n) {
  q_join_half<By, 8>(lane, n);
  q_join_half<By, 4>(lane, n);
  q_join_half<By, 2>(lane, n);
  q_join_half<By, 1>(lane, n);
}

/* Of a leaf: the number of its segment, and of its chunk there. */
template <typename A, typename X> Q_FN X q_segment_of(const A &args, X leaf) {
  return args.chunks == args.leaves ? 0 : q_fast_divide(leaf, args.chunk_divisor);
}
template <typename A, typename X> Q_FN X q_chunk_of(const A &args, X leaf, X segment) { return leaf - segment * (X)args.chunks; }

/* The units [first, end) of an axis of a row, the chunks or the indices of a further axis. A node of such a range is one of the law's
   tree: `first` is a multiple of a power of two, which end - first does not exceed. */
template <typename X> struct q_range {
  X first, end; /* units */
  X leaf, last; /* its first leaf; the one after its last leaf */
  u32 end_dim;  /* the axis after that of the units; n_joined: the units are chunks */
};

/* One lane of the nodes of a range that wait for their right neighbours. By: what reduces. */
template <typename By> struct q_tree {
  typename By::T *waiting; /* `pitch` apart, the innermost last */
  u32 pitch, n;
  typename By::T top; /* the node that came last */
  bool is_there;      /* the top has this lane */

  /* The top is number `index` of its level; is_last: the level ends with it. Joins it, as the right side, with the nodes that wait for it. */
  template <typename X> Q_FN void settle(X index, bool is_last) {
    for (; (index & 1) || (is_last && index); index >>= 1) {
      if (!(index & 1)) continue;
      const typename By::T left = waiting[--n * pitch];
      top = is_there ? By::of(left, top) : left;
      is_there = true;
    }
  }

  /* Adds the next node of a level; nodes come in their order. After the last one the top is the lane's total. */
  template <typename X> Q_FN void put(X index, bool is_last, bool has_lane, typename By::T node) {
    top = node;
    is_there = has_lane;
    settle(index, is_last);
    if (!is_last) waiting[n++ * pitch] = top;
  }

  /* Adds the node of the next leaf of a range, likewise. */
  template <typename A, typename X> Q_FN void take(const A &args, const q_range<X> &range, X leaf, u32 lane, typename By::T node) {
    X segment = q_segment_of(args, leaf);
    const X chunk = q_chunk_of(args, leaf, segment);
    const bool is_end = leaf + 1 == range.last;
    u32 dim = (u32)args.n_joined;
    bool is_last = dim == range.end_dim ? is_end : chunk + 1 == (X)args.chunks;
    top = node;
    is_there = chunk * 256 + lane < (X)args.joined;
    settle(dim == range.end_dim ? chunk - range.first : chunk, is_last);
    for (; is_last && dim < range.end_dim; dim++) {
      const X next = q_fast_divide(segment, args.divisor[dim]), index = segment - next * (X)args.n[dim];
      is_last = dim + 1 == range.end_dim ? is_end : index + 1 == (X)args.n[dim];
      settle(dim + 1 == range.end_dim ? index - range.first : index, is_last);
      segment = next;
    }
    if (!is_last) waiting[n++ * pitch] = top;
  }
};

/* Nodes in the workspace: of those of a reduction, node `index`, this lane. before: the parts of the states of the reductions before;
   room: of nodes. */
template <typename T> Q_FN T *q_node_at(u64 nodes, u64 room, u32 before, u64 index, u32 lane) {
  return (T *)(nodes + room * before * 128) + index * 16 + lane;
}

#endif
