/* how many conditions hold (templates/c/count.c.in) */
void Q_NAME(qk_pack_count_bool_i64_1d_cb)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  *(i64_u *)ptr[1] = q_find_count((const bool_s_u *)ptr[0], n[0]);
}
