/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_scans.h: how a CUDA kernel scans states in the order of docs/internals/reductions.md. Its text follows that of the headers
   before it in files with such kernels. A block of 256 threads has 16 chunks of 256 elements at a time, its slots; 1, 2, 4, 8 or 16 of
   them, the spread, are of one row. A thread has a segment of 16 elements. By: what combines; X: the type that a kernel counts in. */
#ifndef QUERN_KERNEL_SCANS_H
#define QUERN_KERNEL_SCANS_H

/* Replaces each of `n` states by those before it, combined. Returns all, combined. */
template <typename By, typename X> Q_FN typename By::T q_chain(typename By::T *at, X n) {
  constexpr u32 AT_ONCE = sizeof(typename By::T) > 8 ? 4 : 16; /* what is loaded ahead is in registers */
  typename By::T run = typename By::T();
  for (X first = 0; first < n; first += AT_ONCE) {
    typename By::T got[AT_ONCE];
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) got[k] = first + k < n ? at[first + k] : typename By::T();
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      if (first + k >= n) continue;
      at[first + k] = run;
      run = first + k ? By::of(run, got[k]) : got[k];
    }
  }
  return run;
}

template <typename By, typename X> struct q_scanner {
  typename By::T *end;                           /* 256 in shared memory: of segments; then what comes before each in its chunk */
  typename By::T *total, *of_span, *before_span; /* 16 each: of chunks; what comes before a chunk in its span; before its span */
  typename By::T of_chunk, of_whole;             /* of a row, in the thread of its first slot: the carries of its last chunk */

  /* v: a segment's states, each combined with those before it in the segment; first: the place of its first element; n: the elements of
     its row, 0 if there is none; thread: 16 times the slot, and the segment. All threads of a block together. */
  Q_FN void segments(const typename By::T (&v)[16], u32 thread, X first, X n) {
    end[thread] = first < n && n - first >= 16 ? v[15] : typename By::T();
    __syncthreads();
    if (thread % 16 == 0) {
      typename By::T run = end[thread];
      for (u32 k = 1; k < 16; k++) {
        const typename By::T next = end[thread + k];
        end[thread + k] = run;
        if (first < n && n - first >= k * 16 + 16) run = By::of(run, next);
      }
      total[thread / 16] = run;
    }
    __syncthreads();
  }

  /* What comes before each of a row's chunks from `chunk` on, the first of its `spread` slots. By the thread of that slot. */
  Q_FN void carry(u32 slot, u32 spread, X chunk, X chunks) {
    for (u32 k = 0; k < spread && chunk + k < chunks; k++) {
      const X nth = chunk + k;
      typename By::T run = total[slot + k];
      of_span[slot + k] = of_chunk;
      before_span[slot + k] = of_whole;
      if (nth % 256) run = By::of(of_chunk, run);
      of_chunk = run;
      if (nth % 256 == 255) of_whole = nth >= 256 ? By::of(of_whole, run) : run;
    }
  }

  /* What comes before a chunk; initial: before the first. */
  Q_FN typename By::T before(u32 slot, X chunk, typename By::T initial) {
    if (chunk % 256 == 0) return chunk ? before_span[slot] : initial;
    return chunk >= 256 ? By::of(before_span[slot], of_span[slot]) : of_span[slot];
  }

  /* A state of a segment behind all that comes before the segment. */
  Q_FN typename By::T behind(typename By::T v, u32 thread, X chunk) {
    if (thread % 16) v = By::of(end[thread], v);
    if (chunk % 256) v = By::of(of_span[thread / 16], v);
    if (chunk >= 256) v = By::of(before_span[thread / 16], v);
    return v;
  }
};

/* As q_load_run of kernel_rows.h, for elements that count from the end of a row of one axis. */
template <typename T, typename X, int R>
Q_FN void q_load_back(T (&to)[16], const i64 (&stride)[R], u64 from, X first, X n, u64 value, u64 is_value) {
#pragma unroll
  for (u32 k = 0; k < 16; k++) {
    if (is_value & 1) to[k] = q_scalar<T>(value);
    else to[k] = first + 16 * k < n ? qc_load1<T>(from + q_offset(n - 1 - (first + 16 * k), stride[0])) : (T)0;
  }
}

#endif
