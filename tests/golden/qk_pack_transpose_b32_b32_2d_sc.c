/* a tile turned over its diagonal (templates/c/transpose.c.in) */
void Q_NAME(qk_pack_transpose_b32_b32_2d_sc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  (void)params;
  /* row i of the source (contiguous along dimension 1) becomes column i of the destination */
  q_transpose_4(ptr[0], stride[0][0], ptr[1], stride[1][1], n[0], n[1]);
}
