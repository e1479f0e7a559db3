/* less: x < y (dsl/compare.lua:5, templates/c/elementwise_bools.c.in) */
void Q_NAME(qk_less_f64_f64_bool_2d_ccc)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  Q_ASSERT(n0 == 1 || stride[0][0] == 8); /* x is contiguous */
  Q_ASSERT(n0 == 1 || stride[1][0] == 8); /* y is contiguous */
  Q_ASSERT(n0 == 1 || stride[2][0] == 1); /* out is contiguous */
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    const char *row_y = ptr[1] + j * stride[1][1];
    char *row_out = ptr[2] + j * stride[2][1];
    i64 first = 0;
#if Q_PACKS_BOOLS
    for (; first + Q_BOOLS <= n0; first += Q_BOOLS) {
      m64 give[Q_BOOLS];
      Q_IVDEP
      for (int l = 0; l < Q_BOOLS; l++) {
        const i64 i = first + l;
        const f64 in_x = ((const f64_u *)row_x)[i];
        const f64 in_y = ((const f64_u *)row_y)[i];
        const m64 t3 = Q_MASK(m64, in_x < in_y);
        give[l] = t3;
      }
      q_give_bools_64((bool_s_u *)row_out + first, give);
    }
#endif
    const u8 one = q_opaque_one();
    Q_IVDEP_BOOLS
    for (i64 i = first; i < n0; i++) {
      Q_REST_OF_BOOLS;
      const f64 in_x = ((const f64_u *)row_x)[i];
      const f64 in_y = ((const f64_u *)row_y)[i];
      const m64 t3 = Q_MASK(m64, in_x < in_y);
      ((bool_s_u *)row_out)[i] = Q_BOOL(t3);
    }
  }
}
