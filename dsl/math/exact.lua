-- Arithmetic without error: results in two parts.

func "sum_lost" {
  doc  = "What the rounding of s = a + b lost, for a and b of any sizes: a + b = s + sum_lost, exactly.",
  args = "a, b, s",
  body = [[
    T c = s - a;
    return (a - (s - c)) + (b - c); ]],
}
