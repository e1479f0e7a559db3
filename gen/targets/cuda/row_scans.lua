-- SPDX-License-Identifier: Apache-2.0
--
-- The scans in CUDA kernels of ops and expressions that reduce: what rows.lua has for templates/cuda/part_scans.cu.in. A stage runs the
-- scans that it reads on each leaf, before its own elements; a block's groups have the chunks of a row in turn.

local kinds = require "gen.kinds.kinds"

local M = {}

M.HEADER = "kernel_scans.h"

-- The bytes of the widest scanned element, and of what scans have in shared memory.
function M.shared_bytes(types, program)
  local widest = 0
  for _, scan in ipairs(program.scans) do widest = math.max(widest, types.by_name[scan.type].size) end
  return widest, widest > 0 and 16 * 272 * widest + (256 + 48) * 8 or 0
end

function M.name(number) return "scan_" .. number end

-- The names that scans have in a kernel.
function M.names(program)
  local names = {}
  for k = 1, #program.scans do table.move({ M.name(k - 1), "scanner_" .. k - 1 }, 1, 2, #names + 1, names) end
  return names
end

-- The feeders of a stage. emit(feeder, body) -> the text of its result, with the statements added to `body`; reads_place(feeder);
-- literal(type, value), by(reduce) -> text
function M.feeders(types, program, stage, emit, reads_place, literal, by)
  local list = {}
  for k, feeder in ipairs(stage.feeders or {}) do
    local scan, body = program.scans[feeder.scan + 1], {}
    local value = emit(feeder, body)
    local initial = kinds.of(scan.op).empty_result(types, scan.op, scan.type)
    list[k] = { name = M.name(feeder.scan), scanner = "scanner_" .. feeder.scan, element = types.by_name[scan.type].c, body = body, value = value,
                by = by(scan), has_place = reads_place(feeder), is_exclusive = scan.is_exclusive, initial = literal(scan.type, initial) }
  end
  return list
end

return M
