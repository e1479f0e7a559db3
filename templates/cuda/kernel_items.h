/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_items.h: how a CUDA kernel finds and accesses its elements: fast division, offsets, by-value scalars, items of rows. Its
   text follows that of kernel_cuda.h. X is the type that a kernel counts in, u32 or u64. */
#ifndef QUERN_KERNEL_ITEMS_H
#define QUERN_KERNEL_ITEMS_H

/* x / d by multiplication, for x < 2^31 (u64: 2^63). With s the least for which d <= 2^s, magic = { the least m with
   m d >= 2^(31 + s), s }. m is below 2^32 for every d, also for 1. 2 x m / 2^32 is x m / 2^31, and m is too large by less than 1 in
   2^31, not enough to reach the next quotient. */
Q_FN u32 q_fast_divide(u32 x, const u64 (&magic)[2]) { return __umulhi(2 * x, (u32)magic[0]) >> (u32)magic[1]; }
Q_FN u64 q_fast_divide(u64 x, const u64 (&magic)[2]) { return __umul64hi(2 * x, magic[0]) >> (u32)magic[1]; }

/* The offset in bytes of an index along a dimension. In 32 bits index and stride fit an i32 each: one multiply-add with the
   address. */
Q_FN i64 q_offset(u32 index, i64 stride) { return qc_multiply_wide((i32)index, (i32)stride); }
Q_FN i64 q_offset(u64 index, i64 stride) { return (i64)index * stride; }

/* Loads one element. If bit 0 of is_value is set, the operand is a by-value scalar: its bits are in the pointer argument. */
template <typename T> Q_FN T q_scalar(u64 bits) { return (T)bits; }
template <> Q_FN f32 q_scalar<f32>(u64 bits) { return q_from_f32((u32)bits); }
template <> Q_FN f64 q_scalar<f64>(u64 bits) { return q_from_f64(bits); }
template <typename T> Q_FN T q_load_element(u64 from, u64 bits, u64 is_value) {
  return is_value & 1 ? q_scalar<T>(bits) : qc_load1<T>(from);
}

/* An item: the V elements of a row of n from index start on. start wraps below 0 where the row's head cuts the item, and is n where
   there is no item. A whole, aligned item is one access. Of other items only the elements inside the row are accessed; the rest of
   what is loaded is 0. */
template <typename T, int V, typename X>
Q_FN void q_load_item(qc_vec<T, V> &to, u64 row, X start, X n) {
  const u64 from = row + q_offset(start, sizeof(T));
  if (start < n && n - start >= V && from % (V * sizeof(T)) == 0) {
    to = qc_load<T, V>(from);
  } else {
#pragma unroll
    for (u32 k = 0; k < V; k++) to.at[k] = start + k < n ? qc_load1<T>(from + k * sizeof(T)) : (T)0;
  }
}
template <typename T, int V, typename X>
Q_FN void q_store_item(u64 row, const qc_vec<T, V> &elements, X start, X n, bool streamed) {
  const u64 to = row + q_offset(start, sizeof(T));
  if (start < n && n - start >= V && to % (V * sizeof(T)) == 0) {
    qc_store<T, V>(to, elements, streamed);
  } else {
#pragma unroll
    for (u32 k = 0; k < V; k++)
      if (start + k < n) qc_store1<T>(to + k * sizeof(T), elements.at[k], streamed);
  }
}

#endif
