format (1)
local two <const> = 2 * 1
op "acme.pick" { inputs = "bool c, x, y", doc = "d", dtypes = all, body = [[ c ? x : y ]] }
op "acme.five" { inputs = "", doc = "d", dtypes = numeric, body = [[ 5 ]] }
binary "acme.any" {
  doc = "d", dtypes = { "f32", "i32", "bool" }, result = "bool",
  body = { floating = [[ x > y ]], integer = [[ (x & y) != 0 ]], bool = [[ x || !y ]] },
}
unary "acme.mask" { doc = "d", dtypes = integer, params = { bits = 0xff, shift = two }, body = [[ (x & bits) << shift ]] }
