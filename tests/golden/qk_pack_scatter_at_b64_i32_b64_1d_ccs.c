/* a contiguous row to elements at byte offsets (templates/c/at.c.in) */
void Q_NAME(qk_pack_scatter_at_b64_i32_b64_1d_ccs)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  const i64 n0 = n[0]; /* not read in the loop: what is stored may alias it */
  const i32_u *const offset = (const i32_u *)ptr[1];
  const u64_u *const from = (const u64_u *)ptr[0];
  char *const to = ptr[2];
  Q_IVDEP
  for (i64 i = 0; i < n0; i++) *(u64_u *)(to + offset[i]) = from[i];
}
