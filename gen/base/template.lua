-- SPDX-License-Identifier: Apache-2.0
--
-- The template engine. A template is C with lines of its own kind:
--   $param name... | $for name in list | $if condition | $elif condition | $else | $end | $assert condition
--   $include FILE             the lines of FILE of the same folder, indented as this line is
--   $within FILE ... $end     the same, with what is between these two lines in place of FILE's line $inside
-- and ${name} inside lines. $param lines at the head name the parameters of a template and of the files that it includes: a value
-- that is missing or not named there is an error. Expressions are names (a.b), comparisons and one call at most. Knows neither
-- ops nor C.

local licence = require "gen.base.licence"

local M = {}

local function environment(values)
  return setmetatable({}, {
    __index = function(_, key)
      local value = values[key]
      if value == nil then error("template: unknown name '" .. tostring(key) .. "'", 0) end
      return value
    end,
    __newindex = function() error("template: assignment", 0) end,
  })
end

-- An expression as a function of an environment; each text is loaded once.
local compiled = {}
local function compile(expression, where)
  if not compiled[expression] then
    local chunk, err = load("local _ENV = ...; return " .. expression, "=template", "t")
    if not chunk then error("bug: " .. where .. ": " .. err) end
    compiled[expression] = chunk
  end
  return compiled[expression]
end

local function evaluate(chunk, env, where)
  local ok, value = pcall(chunk, env)
  if not ok then error(string.format("bug: %s: %s", where, tostring(value))) end
  return value
end

-- A line that names another template of the folder: a node with its lines. Its params are the root's, too.
local function included(root, file, indent, where, read)
  local path = (root.name:match "^(.*/)" or "") .. file
  local other = M.parse(path, read and read(path) or error("bug: " .. where .. ": no reader for " .. path), read)
  for param in pairs(other.params) do root.params[param] = true end
  return { kind = "include", indent = indent, template = other, where = where, lines = {} }
end

-- Template text -> a tree of lines, once per template. read: path -> text of a template that this one includes
function M.parse(name, text, read)
  local root = { kind = "block", lines = {}, name = name, params = {} }
  local stack = { root }
  local number = 0
  for line in (licence.without(text):gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local where = name .. ":" .. number
    local top = stack[#stack]
    local indent, word, rest = line:match "^(%s*)%$(%a+)%s*(.-)%s*$"
    if word == "for" then
      local variable, list = rest:match "^([%a_][%w_]*)%s+in%s+(.+)$"
      if not variable then error("bug: " .. where .. ": $for name in list") end
      local node = { kind = "for", variable = variable, list = compile(list, where), where = where, lines = {} }
      table.insert(top.lines, node)
      stack[#stack + 1] = node
    elseif word == "if" then
      local branch = { kind = "branch", condition = compile(rest, where), where = where, lines = {} }
      table.insert(top.lines, { kind = "if", branches = { branch } })
      branch.parent = top.lines[#top.lines]
      stack[#stack + 1] = branch
    elseif word == "elif" or word == "else" then
      if top.kind ~= "branch" then error("bug: " .. where .. ": $" .. word .. " without $if") end
      local branch = { kind = "branch", condition = compile(word == "elif" and rest or "true", where), where = where,
                       lines = {}, parent = top.parent }
      table.insert(top.parent.branches, branch)
      stack[#stack] = branch
    elseif word == "include" then
      table.insert(top.lines, included(root, rest, indent, where, read))
    elseif word == "within" then
      local node = included(root, rest, indent, where, read)
      table.insert(top.lines, node)
      stack[#stack + 1] = node
    elseif word == "inside" then
      table.insert(top.lines, { kind = "inside", where = where })
    elseif word == "param" then
      for param in rest:gmatch "%S+" do root.params[param] = true end
    elseif word == "end" then
      if #stack == 1 then error("bug: " .. where .. ": $end without a beginning") end
      stack[#stack] = nil
    elseif word == "assert" then
      table.insert(top.lines, { kind = "assert", condition = compile(rest, where), text = rest, where = where })
    elseif word then
      error("bug: " .. where .. ": unknown $" .. word)
    else
      table.insert(top.lines, { kind = "text", text = line, where = where })
    end
  end
  if #stack > 1 then error("bug: " .. name .. ": a $for, $if or $within is not closed") end
  return root
end

-- around: how the lines are included, or nil: { indent, inside = the lines for $inside, around = how those are included }
local function render_lines(lines, values, out, around)
  local env = environment(values)
  for _, line in ipairs(lines) do
    if line.kind == "text" then
      local indent = around and line.text ~= "" and around.indent or ""
      out[#out + 1] = indent .. (line.text:gsub("%$(%b{})", function(inside)
        local value = evaluate(compile(inside:sub(2, -2), line.where), env, line.where)
        if type(value) ~= "string" and math.type(value) ~= "integer" then
          error(string.format("bug: %s: ${%s} is a %s", line.where, inside:sub(2, -2), type(value)))
        end
        return tostring(value)
      end))
    elseif line.kind == "for" then
      for _, item in ipairs(evaluate(line.list, env, line.where)) do
        render_lines(line.lines, setmetatable({ [line.variable] = item }, { __index = values }), out, around)
      end
    elseif line.kind == "if" then
      for _, branch in ipairs(line.branches) do
        if evaluate(branch.condition, env, branch.where) then
          render_lines(branch.lines, values, out, around)
          break
        end
      end
    elseif line.kind == "include" then
      local indent = (around and around.indent or "") .. line.indent
      render_lines(line.template.lines, values, out, { indent = indent, inside = line.lines, around = around })
    elseif line.kind == "inside" then
      if not around then error("bug: " .. line.where .. ": $inside of a template that is not included") end
      render_lines(around.inside, values, out, around.around)
    elseif not evaluate(line.condition, env, line.where) then
      error(string.format("bug: %s: assertion failed: %s", line.where, line.text))
    end
  end
end

-- The identifiers in a parsed template's own text and in what it includes, as a set; those of comments are left out.
function M.identifiers(template)
  local set = template.identifiers
  if set then return set end
  set = {}
  local function collect(lines)
    for _, line in ipairs(lines) do
      if line.kind == "text" then
        local text = line.text:gsub("%$%b{}", "$"):gsub("/%*.-%*/", " ")
        for word in text:gmatch "%f[%w_$][%a_][%w_]*%f[^%w_$]" do set[word] = true end
      end
      if line.template then collect(line.template.lines) end
      for _, branch in ipairs(line.branches or {}) do collect(branch.lines) end
      if line.lines then collect(line.lines) end
    end
  end
  collect(template.lines)
  template.identifiers = set
  return set
end

-- The subset of `values` that a parsed template takes.
function M.chosen(template, values)
  local result = {}
  for param in pairs(template.params) do result[param] = values[param] end
  return result
end

-- A parsed template with its values -> text ending in a newline.
function M.render(template, values)
  for param in pairs(template.params) do
    if values[param] == nil then error(string.format("bug: %s: no value of $param %s", template.name, param)) end
  end
  for key in pairs(values) do
    if not template.params[key] then error(string.format("bug: %s: %s is no $param", template.name, key)) end
  end
  local out = {}
  render_lines(template.lines, values, out)
  return table.concat(out, "\n") .. "\n"
end

return M
