/* elements at byte offsets to a contiguous row (templates/c/at.c.in) */
void Q_NAME(qk_pack_gather_at_b8_i32_b8_1d_scc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  const i64 n0 = n[0]; /* not read in the loop: what is stored may alias it */
  const i32_u *const offset = (const i32_u *)ptr[1];
  const char *const from = ptr[0];
  u8_u *const to = (u8_u *)ptr[2];
  Q_IVDEP
  for (i64 i = 0; i < n0; i++) to[i] = *(const u8_u *)(from + offset[i]);
}
