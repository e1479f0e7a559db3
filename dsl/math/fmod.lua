-- SPDX-License-Identifier: Apache-2.0
--
-- Remainders of floats: exact (fmod), and with the sign of the divisor (remainder).
--
-- With a = |x|, b = |y| and q the rounded quotient: as long as q is below 2^24 (f64: 2^53), where every whole number is a float,
-- trunc(q) is that of the exact quotient, or one more where that lies just below a whole number. So t = a - trunc(q) b is the
-- remainder or that less b, and exact by one fma either way: it is a multiple of b's last place (a < b is apart), and not larger
-- than b. Larger quotients are long divisions, the primitive `rem`; elements that need none give it a 0, which it gives back.

func "fmod" {
  doc  = "x less y times the truncated quotient, exactly; x's sign.",
  args = "x, y",
  f32  = [[
    f32 a = abs(x);
    f32 b = abs(y);
    f32 q = a / b;
    f32 t = fma(-trunc(q), b, a);
    f32 r = a < b ? a : t < 0 ? t + b : t;
    rare (q >= 0x1p24) { r = rem(q >= 0x1p24 ? a : 0, b); }
    return copysign(r, x); ]],
  f64  = [[
    f64 a = abs(x);
    f64 b = abs(y);
    f64 q = a / b;
    f64 t = fma(-trunc(q), b, a);
    f64 r = a < b ? a : t < 0 ? t + b : t;
    rare (q >= 0x1p53) { r = rem(q >= 0x1p53 ? a : 0, b); }
    return copysign(r, x); ]],
}

func "remainder" {
  doc  = "x less y times the floor of the quotient: fmod, and y more where the signs differ; a zero has y's sign.",
  args = "x, y",
  body = [[
    T r = fmod(x, y);
    return r == 0 ? copysign(r, y) : (r < 0) != (y < 0) ? r + y : r; ]],
}
