/* each element cast (templates/c/convert.c.in) */
void Q_NAME(qk_pack_convert_f16_f32_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  q_convert_f16_f32(ptr[0], ptr[1], n[0]);
}
