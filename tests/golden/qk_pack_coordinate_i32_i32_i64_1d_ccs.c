/* indices in a block to coordinates along one dimension, and to indices along the next outer one (templates/c/coordinate.c.in) */
void Q_NAME(qk_pack_coordinate_i32_i32_i64_1d_ccs)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride;
  const i64 n0 = n[0];
  const i64 step_out = stride[2][0];
  const char *row_index = ptr[0];
  char *row_outer = ptr[1];
  char *row_out = ptr[2];
  /* Indices count from the coordinate `begin`. The first `room` of them are in its row, the others in rows of `extent`. reciprocal:
     2^21 / extent rounded up, for fast division (exact for 1024 indices and shorter rows); 0: rows are longer. */
  const i64 begin = ((const i64_u *)params)[0];
  const u32 room = (u32)((const i64_u *)params)[1], extent = (u32)((const i64_u *)params)[2];
  const u32 reciprocal = (u32)((const i64_u *)params)[3];
  Q_IVDEP
  for (i64 i = 0; i < n0; i++) {
    const u32 index = (u32)((const i32_u *)row_index)[i];
    const m32 is_behind = Q_MASK(m32, index >= room);
    const u32 behind = index - room;
    const u32 row = behind * reciprocal >> 21;
    ((i32_u *)row_outer)[i] = is_behind & (i32)(row + 1);
    *(i64_u *)(row_out + i * step_out) = is_behind ? (i64)(behind - row * extent) : begin + (i64)index;
  }
}
