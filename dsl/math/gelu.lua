func "gelu" {
  args = "x",
  f32 = [[
    f32 a = abs(x);
    f32 z = a > 14.75 ? 14.75 : a;
    f32 s = z * z;
    f32 e = fma(z, z, -s);
    f32 n = fma(s, -0x1.715476p-1, 0x1.8p23 + 190);
    f32 k = n - (0x1.8p23 + 190);
    f32 scale = as_f32(raw_u32(n) << 23);
    f32 rh = fma(k, -0x1.62e43p-1, -0.5 * s);
    f32 rl = fma(k, 0x1.05c61p-29, -0.5 * e);
    f32 r = rh + rl;
    f32 g2 = fma(0x1.757c4p-10, r, 0x1.1240a8p-7);
    f32 g1 = fma(g2, r, 0x1.554906p-5);
    f32 g0 = fma(g1, r, 0x1.555488p-3);
    f32 g = fma(g0, r, 0x1.000008p-1);
    f32 p = fma(r * r, g, rl);
    f32 q = rh + p;

    f32 d = fma(z, 1, 1);
    f32 dl = fma(z, 1, 1 - d);
    f32 t = 1 / d;
    f32 c = fma(-dl, t, fma(-d, t, 1));
    f32 u = t - 0.4375;
    f32 o = 1 - t;
    f32 w12 = fma(0x1.fbe136p2, u, -0x1.5bed46p4);
    f32 w11 = fma(w12, u, 0x1.59c836p4);
    f32 w10 = fma(w11, u, -0x1.c7bdecp2);
    f32 w9 = fma(w10, u, -0x1.05e134p2);
    f32 w8 = fma(w9, u, 0x1.8e5896p2);
    f32 w7 = fma(w8, u, -0x1.08a2c6p2);
    f32 w6 = fma(w7, u, 0x1.81edd4p0);
    f32 w5 = fma(w6, u, 0x1.a310b4p-2);
    f32 w4 = fma(w5, u, -0x1.375566p0);
    f32 w3 = fma(w4, u, 0x1.095cdp0);
    f32 w2 = fma(w3, u, -0x1.55f31ep-2);
    f32 w1 = fma(w2, u, -0x1.6d7e98p-2);
    f32 w0 = fma(w1, u, 0x1.39c8ecp-1);
    f32 w = fma(w0, t, -0x1.9deeb4p-3);
    f32 vc = fma(w, o, fma(o * w, c, c));
    f32 ml = fma(vc, q, vc) + p;
    f32 m = rh + ml;
    f32 me = ml - (m - rh);
    f32 base = (x < 0 ? 0 : x) * 0x1p64;
    f32 y = -z * scale;
    f32 h = fma(t, m, t);
    f32 hl = fma(t, me, fma(t, m, t - h));
    f32 hi = fma(y, h, base);
    f32 lo = fma(y, hl, fma(y, h, base - hi));
    return x > 14.75 ? x : (hi + lo) * 0x1p-64;
  ]],
}
