unary "acme.a" { doc = "d", dtypes = floating, body = [[ x +  ]] }
