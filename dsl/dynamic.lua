-- Ops of class dynamic: how large their output is depends on values. Nothing is computed: they find elements where a condition
-- holds (the only input of an op, or the one before the last, where that is not bool it means != 0) and give, in row-major order,
--   finds = "items"    the last input's items there, every bit kept
--   finds = "places"   the indices of these elements, one row each

op "nonzero" {
  doc    = "The indices of the elements of x that are not zero (NaN is not), as rows [count, ndim] in row-major order.",
  inputs = "x",
  dtypes = all,
  finds  = "places",
}

op "compress" {
  doc    = "The items of x where the condition holds, in row-major order of the shape that both broadcast to.",
  inputs = "bool condition, x",
  dtypes = all,
  finds  = "items",
}
