/* bytes past the cache (templates/c/stream.c.in) */
void Q_NAME(qk_pack_stream_b8_b8_1d_cc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)stride, (void)params;
  q_stream_part(ptr[0], ptr[1], n[0]); /* whoever streams many blocks fences once, behind them */
}
