// SPDX-License-Identifier: Apache-2.0
//
// granite_try.cc: Granite at work. Checks itself and prints TAP.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "dispatcher.h"

using granite::Tensor;
using granite::Type;
using Index = std::vector<std::int64_t>;

static int n_run, n_bad;

static void ok(bool good, const char *name) {
  std::printf("%sok %d - %s\n", good ? "" : "not ", ++n_run, name);
  if (!good) n_bad++;
}

// Floats of which each differs.
static Tensor floats(Index shape, float scale) {
  Tensor t = Tensor::make(Type::float32, shape);
  std::int64_t count = 1;
  for (std::int64_t n : shape) count *= n;
  for (std::int64_t i = 0; i < count; i++) reinterpret_cast<float *>(t.first)[i] = scale * static_cast<float>(i - count / 2);
  return t;
}

// Whether holds(i, j, k) is true of every element of a shape.
template <typename Holds> static bool everywhere(const Index &shape, Holds holds) {
  for (std::int64_t i = 0; i < shape[0]; i++)
    for (std::int64_t j = 0; j < shape[1]; j++)
      for (std::int64_t k = 0; k < shape[2]; k++)
        if (!holds(Index{i, j, k})) return false;
  return true;
}

static double gelu(double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }

int main() {
  const Index shape = {5, 7, 33};
  const Tensor x = floats(shape, 0.01f), y = Tensor::make(Type::float32, shape);

  granite::call("gelu", {x}, y);
  ok(everywhere(shape, [&](const Index &at) {
    const double wanted = gelu(x.at<float>(at));
    return std::fabs(y.at<float>(at) - wanted) <= 2e-7 * std::fabs(wanted) + 1e-30;
  }), "gelu, contiguous");

  const Tensor strided = Tensor::make(Type::float32, {33, 7, 5}).transposed();
  granite::call("gelu", {x}, strided);
  ok(everywhere(shape, [&](const Index &at) { return strided.at<float>(at) == y.at<float>(at); }),
     "gelu to a transposed tensor: the same bits");

  const Tensor row = floats({33}, 3), backwards = row.reversed(0);
  granite::call("add", {x, backwards}, y);
  ok(everywhere(shape, [&](const Index &at) { return y.at<float>(at) == x.at<float>(at) + row.at<float>({32 - at[2]}); }),
     "add: a row, broadcast and backwards");

  const Tensor column = floats({7, 1}, 5), one = floats({1}, 2);
  granite::call("add", {column, x}, y);
  ok(everywhere(shape, [&](const Index &at) { return y.at<float>(at) == column.at<float>({at[1], 0}) + x.at<float>(at); }),
     "  a column");
  granite::call("add", {x, one}, x);
  granite::call("add", {x, one}, y, {}, 3);
  ok(everywhere(shape, [&](const Index &at) { return y.at<float>(at) == x.at<float>(at) + one.at<float>({0}); }),
     "  one element, in place; on three threads");

  granite::call("leaky_relu", {x}, y, {0.25f});
  ok(everywhere(shape, [&](const Index &at) {
    const float a = x.at<float>(at);
    return y.at<float>(at) == (a > 0 ? a : 0.25f * a);
  }), "leaky_relu: a parameter");

  const Tensor is_less = Tensor::make(Type::boolean, shape), zero = Tensor::make(Type::float32, {1});
  granite::call("less", {x, zero}, is_less);
  granite::call("where", {is_less, zero, x}, y);
  ok(everywhere(shape, [&](const Index &at) { return y.at<float>(at) == std::fmax(x.at<float>(at), 0.0f); }),
     "less gives bool, where takes it");

  const Tensor a = Tensor::make(Type::int32, shape), b = Tensor::make(Type::int32, shape);
  std::memset(b.first, 1, 5 * 7 * 33 * 4);
  granite::call("add", {a, b}, a);
  ok(everywhere(shape, [&](const Index &at) { return a.at<std::int32_t>(at) == 0x01010101; }), "add of i32");

  const Tensor half = Tensor::make(Type::float16, shape);
  everywhere(shape, [&](const Index &at) { half.at<std::uint16_t>(at) = 0x3c00; return true; }); // 1
  granite::call("add", {half, half}, half);
  ok(everywhere(shape, [&](const Index &at) { return half.at<std::uint16_t>(at) == 0x4000; }), "add of f16");

  const Tensor empty = Tensor::make(Type::float32, {0, 4});
  granite::call("gelu", {empty}, empty);
  ok(true, "nothing to do for no elements");

  bool is_refused = false;
  try {
    granite::call("add", {x, a}, y);
  } catch (const std::invalid_argument &) {
    is_refused = true;
  }
  ok(is_refused, "mixed dtypes are the framework's business");
  std::printf("1..%d\n", n_run);
  return n_bad != 0;
}
