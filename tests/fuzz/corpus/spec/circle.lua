local t = {} t[1] = t
unary "acme.a" { doc = t, dtypes = t, body = "x" }
