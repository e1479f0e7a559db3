/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_slots.h: how a CUDA kernel finds its elements: division by what is known before it runs, offsets, values, slots of rows.
   Its text stands behind that of kernel_cuda.h. X is u32 or u64, what a kernel counts in. */
#ifndef QUERN_KERNEL_SLOTS_H
#define QUERN_KERNEL_SLOTS_H

/* x / d for x < 2^31 (u64: 2^63): with s the least for which d <= 2^s, by = { the least m with m d >= 2^(31 + s), s }. That is
   below 2^32 for every d, also for 1; 2 x m / 2^32 is x m / 2^31, and m is too large by less than 1 in 2^31, not enough to reach
   the next quotient. */
Q_FN u32 q_divide(u32 x, const u64 (&by)[2]) { return __umulhi(2 * x, (u32)by[0]) >> (u32)by[1]; }
Q_FN u64 q_divide(u64 x, const u64 (&by)[2]) { return __umul64hi(2 * x, by[0]) >> (u32)by[1]; }

/* Bytes from a row's or an operand's beginning. In 32 bits a place and a stride fit an i32 each: one multiply-add with the
   address. */
Q_FN i64 q_offset(u32 at, i64 stride) { return qc_multiply_wide((i32)at, (i32)stride); }
Q_FN i64 q_offset(u64 at, i64 stride) { return (i64)at * stride; }

/* An element that may be a value: then it is not in memory, but the low bytes of what stands for its address. is_value: bit 0. */
template <typename T> Q_FN T q_value(u64 bits) { return (T)bits; }
template <> Q_FN f32 q_value<f32>(u64 bits) { return q_from_f32((u32)bits); }
template <> Q_FN f64 q_value<f64>(u64 bits) { return q_from_f64(bits); }
template <typename T> Q_FN T q_load_value(u64 from, u64 bits, u64 is_value) {
  return is_value & 1 ? q_value<T>(bits) : qc_load1<T>(from);
}

/* A slot: V elements of a row of n, from place start on, which is n where there is no slot, and wraps below 0 where one is cut
   at its head. A whole slot is one access where that is aligned. Of others, what lies in the row; the rest is 0. */
template <typename T, int V, typename X>
Q_FN void q_load_slot(qc_vec<T, V> &to, u64 row, X start, X n) {
  const u64 from = row + q_offset(start, sizeof(T));
  if (start < n && n - start >= V && from % (V * sizeof(T)) == 0) {
    to = qc_load<T, V>(from);
  } else {
#pragma unroll
    for (u32 v = 0; v < V; v++) to.at[v] = start + v < n ? qc_load1<T>(from + v * sizeof(T)) : (T)0;
  }
}
template <typename T, int V, typename X>
Q_FN void q_store_slot(u64 row, const qc_vec<T, V> &elements, X start, X n, bool streamed) {
  const u64 to = row + q_offset(start, sizeof(T));
  if (start < n && n - start >= V && to % (V * sizeof(T)) == 0) {
    qc_store<T, V>(to, elements, streamed);
  } else {
#pragma unroll
    for (u32 v = 0; v < V; v++)
      if (start + v < n) qc_store1<T>(to + v * sizeof(T), elements.at[v], streamed);
  }
}

#endif
