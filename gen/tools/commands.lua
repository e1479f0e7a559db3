-- SPDX-License-Identifier: Apache-2.0
--
-- The commands and options of build.lua, as data: tools/quern/commands.lua tells its form. It parses its arguments by this table.
local abis = require("gen.products.tree.abis").names
local targets = require("gen.targets.all").names()

local SPEC = { "--spec", "FILE", "ops of one's own, generated in any case", many = true, complete = "spec" }
local KNOWN = { "--spec", "FILE", "ops of a spec are known too", many = true, complete = "spec" }
local OUT = { "--out", "DIR", "the folder to write; made if it is missing", complete = "file" }
local PREFIX = { "--prefix", "NAME", "what all names begin with; default: kernels" }

return {
  name = "quern-gen",
  about = "the generator of Quern: kernels and their runtime as C and CUDA sources",
  commands = {
    {
      name = "generate", words = "", about = "write kernels, their runtime and a header into a folder",
      text = [[
Writes kernels, their runtime and a header. A LIST is separated by commas.
    generate --out DIR [OPTION]...                            a tree to compile with one's own sources
    generate --kernels-only --out DIR [OPTION]...             the kernels, a header that declares them and a table of them; no runtime
    generate --scan FILE.c... --out DIR [--dtypes LIST] [--spec FILE]... [--prefix NAME]
                              the kernels of the expressions that C sources name by QUERN_KERNEL, built ahead for libquern; of
                              conditions only #if 0 leaves any out]],
      options = {
        OUT, SPEC,
        { "--ops", "LIST", "of the library's ops only these; default: all; \"\": none", complete = "op" },
        { "--dtypes", "LIST", "only what is needed for these; default: all" },
        PREFIX,
        { "--target", "LIST", "of " .. table.concat(targets, ", ") .. " some or all; default: " .. targets[1], values = targets },
        { "--variants", "lean|full", "full: a kernel for every layout, of rank 1, 2, 3 and n. The runtime uses those of rank 1 and 2",
          values = { "lean", "full" } },
        { "--rank", "LIST", "only kernels of rank 1, 2, 3 or n" },
        { "--class", "LIST", "only kernels of operands that are contiguous, broadcast, strided or transposed; of each op and dtype there "
          .. "is a contiguous one in any case", values = { "contiguous", "broadcast", "strided", "transposed" } },
        { "--kernels-only", nil, "no runtime" },
        { "--scan", "FILE", "a C source with expressions", many = true, complete = "file" },
        { "--single", nil, "one source and one header" },
        { "--abi", "NAME", "functions as well by which others call the ops: tvm-ffi, __tvm_ffi_OP of each op", values = abis },
        { "--no-threads", nil, "the runtime makes no threads" },
        { "--no-environment", nil, "the runtime reads no environment variables" },
        { "--preview", nil, "with dtypes that are not finished: they are stored and cast, nothing is promised of their math" },
        { "--report", nil, "per op how many kernels, bytes of source and of machine code, and seconds of compiling them, by $CC or cc" },
        { "--library", nil, "what libquern is built of", hidden = true },
      },
    },
    {
      name = "freeze", words = "", about = "write the kernels that an application was seen to compile",
      text = "Writes C sources of the kernels of expressions in a record (QUERN_RECORD), built ahead for libquern.",
      options = { { "--record", "FILE", "what the application has recorded", complete = "file" }, OUT, KNOWN, PREFIX },
    },
    {
      name = "check", words = "FILE", complete = "spec", about = "read a spec and say what is wrong with it",
      text = "Reads a spec and says what is wrong with it: by file, line and column.",
      options = {
        { "--measure", nil, "build its ops, by $CC or cc, and hold them to their ULP bounds, against their bodies in 113 bits, and derivatives "
          .. "to differences of these" },
        { "--progress", "auto|always|never", "a line on standard error while it measures; auto: on a terminal",
          values = { "auto", "always", "never" } },
      },
    },
    {
      name = "list", words = "", about = "list the ops and the dtypes they take",
      text = "Lists the ops and the dtypes they take. OPS.md is what --markdown prints, docs/primitives.md what --primitives prints, "
        .. "python/quern/_facts.py what --python prints.",
      options = {
        { "--json", nil, "as JSON" }, { "--markdown", nil, "as Markdown" }, { "--python", nil, "as the facts of Python's docstrings" },
        { "--primitives", nil, "the operations that bodies are made of" }, KNOWN,
      },
    },
    {
      name = "show", words = "KERNEL|OP", complete = "op", about = "print the text of one kernel, or of all kernels of an op",
      text = "Prints the text of one kernel, or of all kernels of an op.", options = { KNOWN },
    },
    {
      name = "new", words = "NAME", about = "write NAME.lua, a spec to start from",
      text = "Writes a spec to start from: of the op acme.swish the file acme_swish.lua.", options = {},
    },
    {
      name = "help", words = "[COMMAND]", complete = "command", about = "tell what a command does and takes",
      text = "Tells what a command does and takes; without one, what there is. As COMMAND --help.", options = {},
    },
  },
  notes = {
    { "Running", "Installed it is quern-gen; in the sources, lua5.4 build.lua. It needs Lua 5.4 and nothing else." },
    { "Exit status", "0: done. 1: it could not be done, or a spec has errors, which are on standard error. 2: the command line is wrong." },
  },
}
