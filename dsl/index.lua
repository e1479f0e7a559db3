-- SPDX-License-Identifier: Apache-2.0
--
-- Ops that compute elements from their indices: `index = true`. They have no inputs. Beside its parameters a body has two names:
-- `index`, the number of the element in row-major order of the output, and `count`, the number of elements. The caller chooses
-- the output's dtype: floats are computed in f64 and rounded to it, integers modulo 2^64 and wrapped.

op "arange" {
  doc    = "start + index * step, the index counting the output's elements in row-major order from 0; integers wrap.",
  inputs = "",
  index  = true,
  params = { start = 0, step = 1 },
  dtypes = numeric,
  body   = { integer = [[ start + index * step ]], floating = [[ fma(index, step, start) ]] },
  examples = { { start = 5, step = -2, index = 3, count = 4, out = -1 }, { index = 7, count = 9, out = 7 } },
}

-- The step is a sum of two numbers, and so is its product with the index: the rounding errors are far below the last bit of the
-- result. Values that could overflow are halved first, values near the subnormal numbers are scaled up.
op "linspace" {
  doc    = "Numbers in a line from start to stop, both of them exactly; where endpoint is 0, stop is one step behind the last.",
  inputs = "",
  index  = true,
  params = { start = 0.0, stop = 1.0, endpoint = 1 },
  dtypes = floating,
  body   = [[
    f64 last = endpoint != 0 ? count - 1 : count;
    f64 divisor = last > 0 ? last : 1;
    f64 largest = maximum(abs(start), abs(stop));
    f64 scale = largest >= 0x1p1022 ? 0.5 : largest < 0x1p-600 ? 0x1p300 : 1;
    f64 back = largest >= 0x1p1022 ? 2 : largest < 0x1p-600 ? 0x1p-300 : 1;
    f64 from = start * scale;
    f64 to = stop * scale;
    f64 all = to - from;
    f64 v = all - to;
    f64 all_low = (to - (all - v)) - (from + v);
    f64 step = all / divisor;
    f64 step_low = (fma(-step, divisor, all) + all_low) / divisor;
    f64 way = index * step;
    f64 way_low = fma(index, step, -way) + index * step_low;
    f64 sum = from + way;
    f64 w = sum - from;
    f64 sum_low = (from - (sum - w)) + (way - w);
    f64 y = (sum + (sum_low + way_low)) * back;
    return index == 0 ? start : index == last ? stop : y;
  ]],
  examples = { { start = 1.0, stop = 2.0, index = 2, count = 5, out = 1.5 },
               { stop = 8.0, endpoint = 0, index = 3, count = 4, out = 6.0 } },
}
