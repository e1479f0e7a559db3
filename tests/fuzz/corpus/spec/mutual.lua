func "f" { body = "g(x)" } func "g" { body = "f(x)" }
unary "acme.a" { doc = "d", dtypes = floating, body = "f(x)" }