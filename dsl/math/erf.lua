func "erf" {
  args = "x",
  f32 = [[
    f32 z = abs(x);
    // |x| < 1.125: x + x P(x^2)
    f32 s = x * x;
    f32 p5 = fma(0x1.4c5cb4p-14, s, -0x1.a5197ap-11);
    f32 p4 = fma(p5, s, 0x1.542fecp-8);
    f32 p3 = fma(p4, s, -0x1.b7fec4p-6);
    f32 p2 = fma(p3, s, 0x1.ce2d52p-4);
    f32 p1 = fma(p2, s, -0x1.81274p-2);
    f32 p0 = fma(p1, s, 0x1.06eba8p-3);
    f32 small = fma(x, p0, x);
    // else 1 - Q(|x| - 1.125)^4
    f32 t = (z > 4 ? 4 : z) - 1;
    f32 q10 = fma(0x1.10602p-17, t, -0x1.fca656p-14);
    f32 q9 = fma(q10, t, 0x1.784cd8p-11);
    f32 q8 = fma(q9, t, -0x1.f09ed6p-10);
    f32 q7 = fma(q8, t, 0x1.96e242p-11);
    f32 q6 = fma(q7, t, 0x1.922326p-8);
    f32 q5 = fma(q6, t, -0x1.6defeep-10);
    f32 q4 = fma(q5, t, -0x1.879874p-5);
    f32 q3 = fma(q4, t, 0x1.f0b0e2p-5);
    f32 q2 = fma(q3, t, 0x1.6ca48p-3);
    f32 q1 = fma(q2, t, -0x1.0bf07ep-1);
    f32 q0 = fma(q1, t, 0x1.9620d6p-2);
    f32 large = fma(-q0, q0, 1);
    return z < 1 ? small : copysign(large, x);
  ]],
}
func "erfc" {
  args = "x",
  f32 = [[
    f32 a = abs(x);
    f32 z = a > 10.5 ? 10.5 : a;
    f32 s = z * z;
    f32 e = fma(z, z, -s);
    f32 n = fma(s, -0x1.715476p0, 0x1.8p23 + 191);
    f32 k = n - (0x1.8p23 + 191);
    f32 scale = as_f32(raw_u32(n) << 23);
    f32 rh = fma(k, -0x1.62e43p-1, -s);
    f32 rl = fma(k, 0x1.05c61p-29, -e);
    f32 r = rh + rl;
    f32 g2 = fma(0x1.757c4p-10, r, 0x1.1240a8p-7);
    f32 g1 = fma(g2, r, 0x1.554906p-5);
    f32 g0 = fma(g1, r, 0x1.555488p-3);
    f32 g = fma(g0, r, 0x1.000008p-1);
    f32 p = fma(r * r, g, rl);
    f32 q = rh + p;

    f32 d = fma(z, 1.5, 1);
    f32 dl = fma(z, 1.5, 1 - d);
    f32 t = 1 / d;
    f32 c = fma(-dl, t, fma(-d, t, 1));
    f32 u = t - 0.4375;
    f32 o = 1 - t;
    f32 w13 = fma(-0x1.8bef56p1, u, 0x1.c3710ap4);
    f32 w12 = fma(w13, u, -0x1.75495cp5);
    f32 w11 = fma(w12, u, 0x1.abcc7cp4);
    f32 w10 = fma(w11, u, 0x1.b2d358p0);
    f32 w9 = fma(w10, u, -0x1.65afc6p3);
    f32 w8 = fma(w9, u, 0x1.11f734p3);
    f32 w7 = fma(w8, u, -0x1.0d3d24p2);
    f32 w6 = fma(w7, u, 0x1.9db82p-1);
    f32 w5 = fma(w6, u, 0x1.28479ep0);
    f32 w4 = fma(w5, u, -0x1.a3a92p0);
    f32 w3 = fma(w4, u, 0x1.19dab2p0);
    f32 w2 = fma(w3, u, -0x1.9d62fap-3);
    f32 w1 = fma(w2, u, -0x1.fd1016p-2);
    f32 w0 = fma(w1, u, 0x1.4e801p-1);
    f32 w = fma(w0, t, -0x1.3acf42p-3);
    f32 vc = fma(w, o, fma(o * w, c, c));
    f32 ml = fma(vc, q, vc) + p;
    f32 m = rh + ml;
    f32 me = ml - (m - rh);
    f32 hh = fma(t, m, t);
    f32 hl = fma(t, me, fma(t, m, t - hh));
    f32 h = hh + hl;
    f32 base = x < 0 ? 0x1p65 : 0;
    return fma(copysign(scale, x), h, base) * 0x1p-64;
  ]],
}
