-- SPDX-License-Identifier: Apache-2.0
--
-- The generator's functions at build time, for build.lua, tools/embed.lua and tests: spec -> dag -> records
-- -> text -> files. At run time there is service.lua. Never prints, never exits: what goes wrong comes back as a list of strings.

local check = require "gen.tools.check"
local freeze = require "gen.products.freeze"
local kernels_only = require "gen.products.tree.kernels_only"
local list = require "gen.tools.list"
local load = require "gen.products.load"
local plan = require "gen.products.plan"
local show = require "gen.products.library.show"
local targets = require "gen.targets.all"
local tree = require "gen.products.tree.tree"

return {
  TARGETS = targets.names(),
  builtin_model = load.builtin_model, load = load.load, plan = plan.plan,
  generate = tree.generate, generate_kernels_only = kernels_only.generate, freeze = freeze.freeze, show = show.text,
  check = check.spec, check_examples = check.examples, measure = check.measure, list = list.ops,
}
