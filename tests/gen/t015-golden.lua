-- SPDX-License-Identifier: Apache-2.0
--
-- t015-golden: one small output per template, as it was when someone last looked at it. A change shows here as a
-- difference to read; QUERN_UPDATE_GOLDEN=1 writes the new text. The numbers of lines of specs may differ.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
package.path = root .. "/?.lua;" .. package.path
local show = require "gen.products.library.show"
local tap = require "tap"

local KERNELS = {
  "qk_add_f32_f32_f32_2d_bcc", "qk_leaky_relu_f64_f64_2d_ss", "qk_where_bool_b16_b16_b16_2d_cccc",
  "qk_log_f32_f32_1d_cc", "qk_exp_f64_f64_1d_cc", "qk_tanh_f32_f32_1d_cc", "qk_less_f16_f16_bool_2d_ccc",
  "qk_less_f64_f64_bool_2d_ccc", "qk_negative_f16_f16_2d_cc", "qk_ldexp_f32_i32_f32_1d_ccc",
  "qk_add_f16_f16_f16_3d_ccs", "qk_less_i32_i32_bool_nd_sss", "qk_pack_convert_f16_f32_1d_cc",
  "qk_pack_narrow_f32_bf16_1d_cc", "qk_pack_convert_i64_bf16_1d_cc",
  "qk_pack_transpose_b32_b32_2d_sc", "qk_pack_gather_at_b8_i32_b8_1d_scc", "qk_pack_scatter_at_b64_i32_b64_1d_ccs",
  "qk_pack_stream_b8_b8_1d_cc", "qk_full_b32_2d_c",
  "qk_compress_bool_b32_b32_i64_1d_cccb", "qk_nonzero_bool_i32_i64_1d_ccb", "qk_pack_count_bool_i64_1d_cb",
  "qk_pack_coordinate_i32_i32_i64_1d_ccs",
  "qk_prim_lookup_f32_i32_f32_1d_bcc", "qk_prim_bits_f64_i64_1d_cc", "qk_bitwise_right_shift_i16_i16_i16_2d_bcc", "qk_bitwise_right_shift_i8_i8_i8_2d_ccc",
  "qk_fma_bf16_bf16_bf16_bf16_2d_cbcc", "qk_clip_bf16_bf16_1d_cc", "qk_fmin_f64_f64_f64_2d_ccc",
  "qc_add_f32_f32_f32_2d_bcc", "qc_log_f32_f32_1d_cc", "qc_leaky_relu_f16_f16_nd_ss_i64", "qc_add_f32_f32_f32_3d_tbc",
  "qc_arange_b8_f16_2d_bc", "qc_sum_f32_f32_nd_ss", "qc_sum_f32_f32_2d_ss", "qc_cumulative_sum_f32_f32_nd_ss",
}

-- A text without the numbers of lines of specs.
local function without_lines(text) return text and (text:gsub("(dsl/[%w_/]+%.lua):%d+", "%1")) end

-- One kernel as `show` prints it, all others in this process.
local pipe = assert(io.popen(string.format("cd '%s' && lua5.4 build.lua show %s 2>&1", root, KERNELS[1])))
local shown = pipe:read "a"
pipe:close()
local text_of = show.reader(root, nil)
for k, name in ipairs(KERNELS) do
  local text, why = text_of(name)
  local ok = text ~= nil
  text = text or table.concat(why, "\n")
  if k == 1 then tap.is(shown, text, "build.lua show prints it") end
  local file_name = name .. (name:find "^qc_" and ".cu" or ".c")
  local path = root .. "/tests/golden/" .. file_name
  if os.getenv "QUERN_UPDATE_GOLDEN" == "1" and ok then
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
  end
  local file = io.open(path)
  local wanted = file and file:read "a"
  if file then file:close() end
  for spec, line in (text or ""):gmatch "(dsl/[%w_/]+%.lua):(%d+)" do
    local at = 0
    for row in io.lines(root .. "/" .. spec) do
      at = at + 1
      if at == tonumber(line) and not row:find '^%l+ "[%w_.]+" {' then tap.ok(false, "%s: %s:%s is no declaration", name, spec, line) end
    end
  end
  local is_same = without_lines(text) == without_lines(wanted)
  tap.ok(ok and is_same, "%s", name)
  if not is_same then tap.diag("tests/golden/%s differs from:\n%s", file_name, text) end
end

-- Signs of 16-bit floats are changed in the 16 bits: no element becomes an f32.
for _, name in ipairs { "qk_copysign_f16_f16_f16_2d_ccc", "qk_negative_bf16_bf16_2d_cc", "qc_abs_f16_f16_2d_cc" } do
  local text = text_of(name) or ""
  tap.ok(text:find "i16 in_x" and not text:find "f32", "%s: no cast", name)
end
tap.done_testing()
