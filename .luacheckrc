-- SPDX-License-Identifier: Apache-2.0
--
-- luacheck's settings: `luacheck .` must say nothing.
std = "lua54"
max_line_length = 165 -- long patterns and texts of tests; code and prose keep to 130 columns
exclude_files = { "build*", "tests/fuzz/corpus", "tests/golden" }

ignore = {
  "311", -- a value that is overwritten: messages are given back as `nil, why`, and a later attempt has another `why`
  "542", -- an empty branch: it has a comment that says why nothing is to be done
}

-- Specs: their globals are what the sandbox gives them, see the environments in gen/front/spec.lua and the sets of dsl/types.lua.
local SPEC = {
  std = { read_globals = {
    "format", "unary", "binary", "op", "reduction", "row", "scan", "adjoint", "func", "constants", "tables", "dtype",
    "all", "floating", "integer", "integral", "numeric", "real", "INFINITY", "NAN", "PI",
  } },
}
files["dsl"] = SPEC
files["examples"] = SPEC
