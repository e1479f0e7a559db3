// SPDX-License-Identifier: Apache-2.0
//
// granite_tensor.h: Granite's tensor: shared memory seen through a shape and strides, counted in elements. Knows no kernels.
#ifndef GRANITE_TENSOR_H
#define GRANITE_TENSOR_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace granite {

enum class Type { boolean, int32, float16, float32 };

inline std::int64_t size_of(Type type) {
  switch (type) {
    case Type::boolean: return 1;
    case Type::float16: return 2;
    default: return 4;
  }
}

struct Tensor {
  std::shared_ptr<char> memory;
  char *first = nullptr; // the element at index 0, 0, ...
  Type type = Type::float32;
  std::vector<std::int64_t> shape, strides;

  // A new one in row-major order.
  static Tensor make(Type type, std::vector<std::int64_t> shape) {
    Tensor t;
    t.type = type;
    t.strides.resize(shape.size());
    std::int64_t count = 1;
    for (std::size_t d = shape.size(); d-- > 0; count *= shape[d]) t.strides[d] = count;
    t.memory.reset(new char[static_cast<std::size_t>(count * size_of(type))](), std::default_delete<char[]>());
    t.first = t.memory.get();
    t.shape = std::move(shape);
    return t;
  }

  template <typename Element> Element &at(const std::vector<std::int64_t> &index) const {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); d++) offset += index[d] * strides[d];
    return *reinterpret_cast<Element *>(first + offset * size_of(type));
  }

  // Views of the same memory.
  Tensor transposed() const {
    Tensor t = *this;
    t.shape.assign(shape.rbegin(), shape.rend());
    t.strides.assign(strides.rbegin(), strides.rend());
    return t;
  }
  Tensor reversed(std::size_t d) const {
    Tensor t = *this;
    t.first += (shape[d] - 1) * strides[d] * size_of(type);
    t.strides[d] = -strides[d];
    return t;
  }
};

} // namespace granite

#endif
