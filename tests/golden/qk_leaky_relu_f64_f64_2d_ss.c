/* leaky_relu: x > 0 ? x : slope * x (dsl/unary.lua:122, templates/c/elementwise.c.in) */
void Q_NAME(qk_leaky_relu_f64_f64_2d_ss)(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {
  Q_KERNEL_ENTRY;
  (void)ptr, (void)stride, (void)n, (void)params;
  const f64 p_slope = *(const f64_u *)((const char *)params + 0);
  const i64 n0 = n[0];
  Q_ASSERT(n0 > 0 && n[1] > 0);
  const i64 step_x = stride[0][0];
  const i64 step_out = stride[1][0];
  for (i64 j = 0; j < n[1]; j++) {
    const char *row_x = ptr[0] + j * stride[0][1];
    char *row_out = ptr[1] + j * stride[1][1];
    Q_IVDEP
    for (i64 i = 0; i < n0; i++) {
      const f64 in_x = *(const f64_u *)(row_x + i * step_x);
      const m64 t4 = Q_MASK(m64, in_x > 0.0);
      const f64 t5 = p_slope * in_x;
      const f64 t6 = q_sel_f64(t4, in_x, t5);
      *(f64_u *)(row_out + i * step_out) = q_canon_f64(t6);
    }
  }
}
