-- SPDX-License-Identifier: Apache-2.0
--
-- How CUDA kernels are compiled: nvcc's flags, as lines of sources.txt and as CMake's text (see the C target's).

local M = {}

M.CHIPS = { 80, 90, 100 } -- of the library's fatbins; each runs on later chips of its generation, too

M.KINDS = { "cuda", "cuda_core", "fatbin" }
M.NOTES = {
  cuda = "# cuda FILE: compiled by nvcc for compute capability 7.5 or later, without -use_fast_math and -ftz=true.",
  cuda_core = "# cuda_core FILE: C, compiled once by what finds CUDA's headers (nvcc does). Both want CUDA's runtime and C++'s.",
  fatbin = "# fatbin FILE: compiled by nvcc with the flags of level fatbin; beside the index, in cuda/ where the modules are.",
}

function M.flags(_, is_library)
  if not is_library then return {} end
  local flags = { "flags fatbin -std=c++17 -fatbin" }
  for _, chip in ipairs(M.CHIPS) do flags[#flags + 1] = string.format("-gencode arch=compute_%d,code=sm_%d", chip, chip) end
  return { table.concat(flags, " ") }
end

M.CMAKE = {
  version = "3.18",
  language = "CUDA",
  package = "find_package(CUDAToolkit REQUIRED)\n",
  lists = { { "CUDA", "cuda" }, { "CUDA_CORE", "cuda_core" } },
  -- The kernels for CUDA and what launches them are part of the same library.
  sources = [[
target_sources(@name@_tree PRIVATE ${@NAME@_CUDA} ${@NAME@_CUDA_CORE})
set_target_properties(@name@_tree PROPERTIES CUDA_STANDARD 17)
# what nvcc makes needs C++'s runtime, whatever links it
target_link_libraries(@name@_tree PUBLIC CUDA::cudart_static $<$<PLATFORM_ID:Linux>:stdc++>)
]],
}

return M
