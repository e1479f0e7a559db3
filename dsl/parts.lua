-- Ops that take numbers apart and put them together, one entry each. Names as in NumPy. An op with `outputs` has several: its
-- body assigns them; in an expression NAME.OUTPUT(x) is one of them.

op "modf" {
  doc     = "The fraction of x, with its sign, and the integer part, truncated: x = fraction + integral.",
  inputs  = "x",
  outputs = "fraction, integral",
  dtypes  = floating,
  body    = [[
    integral = trunc(x);
    fraction = copysign(abs(x) == INFINITY ? 0 : x - integral, x);
  ]],
  examples = { { x = 3.25, fraction = 0.25, integral = 3.0 }, { x = -INFINITY, fraction = -0.0, integral = -INFINITY } },
}
