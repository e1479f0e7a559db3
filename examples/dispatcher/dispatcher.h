// SPDX-License-Identifier: Apache-2.0
//
// dispatcher.h: Granite's ops by name. The kernels are generated; how they are found and called is in dispatcher.cc.
#ifndef GRANITE_DISPATCHER_H
#define GRANITE_DISPATCHER_H

#include <string>
#include <vector>

#include "granite_tensor.h"

namespace granite {

// Computes op(inputs) into out. Inputs broadcast to out's shape; dtypes must be those of a kernel. Runs on up to `threads`
// threads. Throws std::invalid_argument where no kernel serves the operands.
void call(const std::string &op, const std::vector<Tensor> &inputs, const Tensor &out, const std::vector<float> &params = {},
          int threads = 1);

} // namespace granite

#endif
