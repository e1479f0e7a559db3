-- The template engine. A template is C with lines of its own kind:
--   $for name in list | $if condition | $elif condition | $else | $end | $assert condition
-- and ${name} inside lines. Expressions are names (a.b), comparisons and one call at most; an unknown or non-string
-- value is an error. Knows neither ops nor C.

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

local function compile(expression, where)
  local chunk, err = load("return " .. expression, "=" .. where, "t", nil)
  if not chunk then error("bug: " .. where .. ": " .. err) end
  return expression
end

local function evaluate(expression, env, where)
  local chunk = assert(load("return " .. expression, "=" .. where, "t", env))
  local ok, value = pcall(chunk)
  if not ok then error(string.format("bug: %s: %s", where, tostring(value))) end
  return value
end

-- Template text -> a tree of lines, once per template.
function M.parse(name, text)
  local root = { kind = "block", lines = {} }
  local stack = { root }
  local number = 0
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local where = name .. ":" .. number
    local top = stack[#stack]
    local word, rest = line:match "^%s*%$(%a+)%s*(.-)%s*$"
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
      local branch = { kind = "branch", condition = word == "elif" and compile(rest, where) or "true", where = where,
                       lines = {}, parent = top.parent }
      table.insert(top.parent.branches, branch)
      stack[#stack] = branch
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
  if #stack > 1 then error("bug: " .. name .. ": a $for or $if is not closed") end
  return root
end

local function render_lines(lines, values, out)
  local env = environment(values)
  for _, line in ipairs(lines) do
    if line.kind == "text" then
      out[#out + 1] = (line.text:gsub("%$(%b{})", function(inside)
        local value = evaluate(inside:sub(2, -2), env, line.where)
        if type(value) ~= "string" and math.type(value) ~= "integer" then
          error(string.format("bug: %s: ${%s} is a %s", line.where, inside:sub(2, -2), type(value)))
        end
        return tostring(value)
      end))
    elseif line.kind == "for" then
      for _, item in ipairs(evaluate(line.list, env, line.where)) do
        render_lines(line.lines, setmetatable({ [line.variable] = item }, { __index = values }), out)
      end
    elseif line.kind == "if" then
      for _, branch in ipairs(line.branches) do
        if evaluate(branch.condition, env, branch.where) then
          render_lines(branch.lines, values, out)
          break
        end
      end
    elseif not evaluate(line.condition, env, line.where) then
      error(string.format("bug: %s: assertion failed: %s", line.where, line.text))
    end
  end
end

-- A parsed template with its values -> text ending in a newline.
function M.render(template, values)
  local out = {}
  render_lines(template.lines, values, out)
  return table.concat(out, "\n") .. "\n"
end

return M
