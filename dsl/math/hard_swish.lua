-- SPDX-License-Identifier: Apache-2.0
--
-- x (x + 3) / 6, with the product's and the quotient's rests: at most 1.5 ULP.
--
-- 1/6 is 0x1.55554p-3, below it in both dtypes, and a rest that is positive: of x = 0 all products have x's sign, and y too.
-- The rest of the product is negative, since -0 * -sixth is 0 but 0 * -sixth is -0. Of x = -3 the result is -0.
--
-- f32: the bounds by two minima of bits, which are instructions of every vector and any port. Of negative numbers the bits, as
-- unsigned integers, grow with the magnitude. The first minimum makes -3 of what is below. x and y have one sign. From 3 on y is not
-- below x, it is infinity, or NaN of overflow, with larger bits than x; below 3 its magnitude is not above that of x. So the second
-- minimum is x from 3 on, y below. (At every f32 it is.)

func "hard_swish_near" {
  doc  = "x (x + 3) / 6.",
  args = "x",
  body = [[
    T s = x + 3;
    T p = x * s;
    T lost = fma(-x, s, p);
    return fma(p, 0x1.55554p-3, fma(p, 0x1.5555555555555p-23, lost * -0x1.55554p-3)); ]],
}

func "hard_swish_bounded" {
  doc  = "x times hard_sigmoid(x): x from 3 on, -0 up to -3.",
  args = "x",
  f32  = [[
    f32 y = hard_swish_near(as_f32(minimum(raw_u32(x), 0xc0400000)));
    return canonical(x == x ? as_f32(minimum(raw_u32(y), raw_u32(x))) : NAN); ]],
  f64  = [[
    return x <= -3 ? -0.0 : x >= 3 ? x : hard_swish_near(x); ]],
}
