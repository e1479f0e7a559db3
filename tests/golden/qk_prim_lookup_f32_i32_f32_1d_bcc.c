/* a step of an expression: items of a table of 2^k (templates/c/lookup.c.in) */
void Q_NAME(qk_prim_lookup_f32_i32_f32_1d_bcc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride;
  const i64 n0 = n[0];
  const i32 last = (i32)*(const i64_u *)params; /* items are a power of two */
  const f32_u *const table = (const f32_u *)ptr[0];
  const i32_u *const index = (const i32_u *)ptr[1];
  f32_u *const out = (f32_u *)ptr[2];
  Q_IVDEP
  for (i64 i = 0; i < n0; i++) out[i] = q_canon_f32(table[index[i] & last]);
}
