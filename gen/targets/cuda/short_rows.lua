-- SPDX-License-Identifier: Apache-2.0
--
-- CUDA kernels of ops that reduce, for many rows of a few elements: a thread has a row. Of rank 2: the elements of a row, and the rows.
-- The stages and what they compute are those of rows.lua; the template is templates/cuda/rows_short.cu.in.

local rows = require "gen.targets.cuda.rows"

local M = {}

M.TEMPLATE, M.HEADER, M.RANK = "rows_short", rows.HEADER, "2"
local FIXED_FIELDS = 7 -- ORDER QN_SHORT_FIELDS of runtime/core/simt/rows/short_rows.h
local MOST_STATES = 16 -- bytes of a stage's states, of which a thread has 16. ORDER QN_SHORT_STATES of runtime/core/simt/rows/short_rows.h

M.max_rank, M.reducers = rows.max_rank, rows.reducers

-- Whether kernels are made ahead for a program. At run time they are made for any that the host asks for.
function M.is_worthwhile(types, program) return rows.most_states(types, program) <= MOST_STATES end

function M.arguments_name(shape) return string.format("q_short_%d_%d", shape.operands, shape.params) end

-- Fields of 8 bytes.
function M.n_arguments(shape) return 3 * shape.operands + FIXED_FIELDS + shape.params end

function M.arguments_text(shape)
  local n = shape.operands
  local lines = {
    string.format("struct %s {", M.arguments_name(shape)),
    string.format("  u64 ptr[%d]; /* addresses of the operands' first elements, inputs before outputs */", n),
    "  u64 items, rows; /* an item is the rows that a block takes at a time, 1 << tile_bits */",
    "  u64 flags; /* 1: outputs are streamed; 256 << k: input k is a by-value scalar, its bits are in ptr[k] */",
    "  u64 joined, tile_bits; /* elements of a row */",
    "  u64 divisor[2]; /* of joined: see q_fast_divide */",
    string.format("  i64 stride[%d][2]; /* in bytes: from element to element, from row to row */", n),
  }
  if shape.params > 0 then lines[#lines + 1] = string.format("  u64 param[%d]; /* each in its first bytes */", shape.params) end
  lines[#lines + 1] = "};"
  return table.concat(lines, "\n") .. "\n"
end

-- kit: see rows.lua
function M.values(kit, types, entry, parsed, tables) return rows.values(kit, types, entry, parsed, tables, "") end

return M
