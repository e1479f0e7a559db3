unary "acme.swish" {
  doc    = "x times the logistic function of k times x.",
  params = { k = 1.0 },
  dtypes = floating,
  body   = [[ x * sigmoid(k * x) ]],
  ulp    = { f32 = 4, f64 = 4 },
  domain = { -20, 20 },
  examples = { { x = 0.0, y = 0.0 } },
}
