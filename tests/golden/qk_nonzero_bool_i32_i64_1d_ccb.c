/* nonzero (dsl/dynamic.lua:8, templates/c/find.c.in) */
void Q_NAME(qk_nonzero_bool_i32_i64_1d_ccb)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  const bool_s_u *const condition = (const bool_s_u *)ptr[0];
  *(i64_u *)ptr[2] = q_find_places(condition, (i32_u *)ptr[1], n[0]);
}
