// SPDX-License-Identifier: Apache-2.0
//
// dispatcher.cc: the table of kernels becomes a map from ops to rows. A call takes the op's first row that serves the operands'
// dtypes and strides, and runs its two loops once for each index of the other dimensions.
#include "dispatcher.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <thread>

#include "granite.h" // generated

namespace granite {
namespace {

std::uint8_t dtype_of(Type type) {
  switch (type) {
    case Type::boolean: return GRANITE_DTYPE_BOOL;
    case Type::int32: return GRANITE_DTYPE_I32;
    case Type::float16: return GRANITE_DTYPE_F16;
    case Type::float32: return GRANITE_DTYPE_F32;
  }
  throw std::invalid_argument("unknown type");
}

// Kernels that only move elements are made for sizes, not for dtypes.
std::uint8_t bits_of(Type type) {
  const std::int64_t size = size_of(type);
  return size == 1 ? GRANITE_DTYPE_B8 : size == 2 ? GRANITE_DTYPE_B16 : GRANITE_DTYPE_B32;
}

using Rows = std::vector<const granite_kernel_row *>;

// By op. Rows of contiguous kernels come before those of strided ones.
const std::map<std::string, Rows> &registry() {
  static const std::map<std::string, Rows> map = [] {
    std::map<std::string, Rows> made;
    for (std::int32_t k = 0; k < granite_n_kernels; k++) made[granite_kernels[k].op].push_back(&granite_kernels[k]);
    for (auto &entry : made)
      std::sort(entry.second.begin(), entry.second.end(), [](const granite_kernel_row *a, const granite_kernel_row *b) {
        const auto n = std::count(a->classes, a->classes + std::strlen(a->classes), 's');
        const auto m = std::count(b->classes, b->classes + std::strlen(b->classes), 's');
        return n != m ? n < m : a < b; // of one table
      });
    return made;
  }();
  return map;
}

// The operands as loops, the inner dimension first: extents, and strides in bytes.
struct Loops {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides; // of an operand: by dimension
  std::vector<char *> first;
};

Loops loops_of(const std::vector<Tensor> &operands) {
  const Tensor &out = operands.back();
  Loops loops;
  loops.extents.assign(out.shape.rbegin(), out.shape.rend());
  loops.extents.resize(std::max<std::size_t>(2, loops.extents.size()), 1); // a kernel has two loops
  for (const Tensor &t : operands) {
    std::vector<std::int64_t> strides(loops.extents.size(), 0);
    if (t.shape.size() > out.shape.size()) throw std::invalid_argument("an input has more dimensions than the output");
    for (std::size_t d = 0; d < t.shape.size(); d++) {
      const std::size_t own = t.shape.size() - 1 - d;
      if (t.shape[own] != loops.extents[d] && t.shape[own] != 1) throw std::invalid_argument("shapes do not broadcast");
      if (t.shape[own] != 1) strides[d] = t.strides[own] * size_of(t.type);
    }
    loops.strides.push_back(strides);
    loops.first.push_back(t.first);
  }
  return loops;
}

bool serves(const granite_kernel_row &row, const std::vector<Tensor> &operands, const Loops &loops) {
  if (row.n_in + row.n_out != static_cast<int>(operands.size()) || row.rank != 2) return false;
  for (std::size_t k = 0; k < operands.size(); k++) {
    const Type type = operands[k].type;
    if (row.dtypes[k] != dtype_of(type) && row.dtypes[k] != bits_of(type)) return false;
    if (row.classes[k] == 'c' && loops.strides[k][0] != size_of(type)) return false;
    if (row.classes[k] == 'b' && loops.strides[k][0] != 0) return false;
  }
  return true;
}

// The kernel's two loops for each index of the dimensions from the third on.
void run(granite_kernel *kernel, const Loops &loops, const void *params) {
  const std::size_t n_operands = loops.first.size(), rank = loops.extents.size();
  std::vector<char *> at = loops.first;
  std::vector<std::int64_t> index(rank, 0);
  std::vector<std::int64_t> strides;
  for (const auto &of_operand : loops.strides) strides.insert(strides.end(), {of_operand[0], of_operand[1]});
  const auto stride = reinterpret_cast<const std::int64_t(*)[2]>(strides.data());
  if (std::count(loops.extents.begin(), loops.extents.end(), 0)) return; // a kernel's extents are at least 1
  for (;;) {
    kernel(at.data(), stride, loops.extents.data(), params);
    std::size_t d = 2;
    for (; d < rank; d++) {
      const bool is_next = ++index[d] < loops.extents[d];
      for (std::size_t k = 0; k < n_operands; k++) at[k] += loops.strides[k][d] * (is_next ? 1 : 1 - loops.extents[d]);
      if (is_next) break;
      index[d] = 0;
    }
    if (d == rank) return;
  }
}

// The part of the longest outer dimension that thread i of n runs.
Loops part(Loops loops, int i, int n) {
  const auto longest = std::max_element(loops.extents.begin() + 1, loops.extents.end());
  const std::size_t d = static_cast<std::size_t>(longest - loops.extents.begin());
  const std::int64_t begin = *longest * i / n, end = *longest * (i + 1) / n;
  for (std::size_t k = 0; k < loops.first.size(); k++) loops.first[k] += begin * loops.strides[k][d];
  *longest = end - begin;
  return loops;
}

} // namespace

void call(const std::string &op, const std::vector<Tensor> &inputs, const Tensor &out, const std::vector<float> &params,
          int threads) {
  static const granite_level level = granite_machine_level();
  std::vector<Tensor> operands = inputs;
  operands.push_back(out);
  const auto found = registry().find(op);
  if (found == registry().end()) throw std::invalid_argument(op + ": no such op");
  const Loops loops = loops_of(operands);
  for (const granite_kernel_row *row : found->second) {
    if (!serves(*row, operands, loops)) continue;
    granite_kernel *kernel = granite_kernel_function(row, level);
    if (!kernel) continue;
    if (params.size() != row->n_params || (row->n_params && row->param_dtype != GRANITE_DTYPE_F32))
      throw std::invalid_argument(op + ": other parameters than the kernel's");
    std::vector<std::int64_t> packed(params.size() + 1, 0); // 8 bytes each
    for (std::size_t p = 0; p < params.size(); p++) std::memcpy(&packed[p], &params[p], sizeof params[p]);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++)
      others.emplace_back([&, i] { run(kernel, part(loops, i, threads), packed.data()); });
    run(kernel, part(loops, 0, threads), packed.data());
    for (std::thread &other : others) other.join();
    return;
  }
  throw std::invalid_argument(op + ": no kernel for these dtypes");
}

} // namespace granite
