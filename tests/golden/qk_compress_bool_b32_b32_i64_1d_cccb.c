/* compress (dsl/dynamic.lua:15, templates/c/find.c.in) */
void Q_NAME(qk_compress_bool_b32_b32_i64_1d_cccb)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  const bool_s_u *const condition = (const bool_s_u *)ptr[0];
  *(i64_u *)ptr[3] = q_find_items_4(condition, (const u32_u *)ptr[1], (u32_u *)ptr[2], n[0]);
}
