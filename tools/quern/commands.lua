-- SPDX-License-Identifier: Apache-2.0
--
-- The program quern's commands and options, as data: its help and usage, what it parses, completions and man page are made of this
-- table by gen/tools/command_texts.lua. An option is { name, value, help }: value nil: it takes none; many: it may be given
-- several times; values: a list of those there are; complete: "file", "spec", "op".
return {
  name = "quern",
  about = "tensor kernels of one expression, on NumPy's files",
  commands = {
    {
      name = "run", words = "EXPRESSION|OP [NAME[:DTYPE]=FILE]... [PARAM=NUMBER]...", complete = "run",
      about = "compute an expression, or an op, of .npy and .npz files",
      text = [[
Computes an expression of arrays in files, such as
    quern run "y = gelu(x * w + b)" x=x.npy w=w.npy b=b.npy y=out.npy
or one op by its name, such as
    quern run gelu x=x.npy y=g.npy
    quern run sum x=x.npy axis=-1
`quern ops NAME` tells an op's names. The output of an op that has only one may be given any name. An output without a file is
printed if it has at most 100 elements. x:bf16=FILE says what the 16-bit words of an input are; y:f16=FILE asks for a dtype of an
output. A parameter, of an op or declared by `param a;`, is given as a=0.5; axis=-1 or axis=0,2 are the axes of an op that reduces.
FILE is - for standard input or output, for one input and one output. FILE.npz:NAME is an array of an archive; FILE.npz alone is
the one of the operand's name, or its only one. Outputs with one .npz file are written into it together.]],
      options = {
        { "--spec", "FILE", "ops of a spec file are known too", many = true, complete = "spec" },
        { "--param", "NAME=NUMBER", "the value of a parameter, as NAME=NUMBER alone", many = true },
        { "--jit", "off|sync|async", "off: only what is built and the interpreter; sync: compile first; async: compile meanwhile",
          values = { "off", "sync", "async" } },
        { "--threads", "N", "at most N threads" },
        { "--device", "cpu|cuda[:N]", "cuda:N: move the arrays to a CUDA device (cuda: the first), compute there and move the results back; "
          .. "prints what each of the three took", values = { "cpu", "cuda" } },
        { "--repeat", "N", "compute N times and print the median time" },
        { "--explain", nil, "print how it was computed" },
        { "--compress", nil, "compress the arrays of .npz outputs" },
        { "--progress", "auto|always|never", "a line on standard error while work takes long; auto: on a terminal, from two seconds on",
          values = { "auto", "always", "never" } },
      },
    },
    {
      name = "ops", words = "[NAME]", complete = "op",
      about = "list the ops, or tell all of one",
      text = [[
Lists the ops that expressions can call, and behind them the backward ops, which compute the derivatives of others. With a name it
tells an op's formula, operands with their dtypes, and parameters.]],
      options = {
        { "--filter", "TEXT", "only ops with this text in their name or description" },
        { "--names", nil, "the names alone" },
        { "--json", nil, "as JSON, all in one list" },
        { "--spec", "FILE", "ops of a spec file are known too", many = true, complete = "spec" },
      },
    },
    {
      name = "show", words = "EXPRESSION|OP [NAME:DTYPE[SHAPE]]...", complete = "op",
      about = "print the C text that an expression or op becomes",
      text = [[
Prints the C text that an expression of such operands becomes, such as
    quern show "y = gelu(x * w + b)" x:f32[1000,256] w:f32[256] b:f32[256]
An op is shown as the expression that calls it: quern show gelu. Operands that are not given are f32 of one dimension.]],
      options = { { "--spec", "FILE", "ops of a spec file are known too", many = true, complete = "spec" } },
    },
    {
      name = "info", words = "", about = "print what this library has and can do on this machine",
      text = "Prints what this library has and can do on this machine: SIMD level, compilers, CUDA, the cache.", options = {},
    },
    {
      name = "cache", words = "[list|clear]", complete = { "list", "clear" }, about = "list what the disk cache holds, or remove it all",
      text = "Lists what the disk cache of compiled expressions holds, or removes all of it.", options = {},
    },
    {
      name = "help", words = "[COMMAND]", complete = "command", about = "tell what a command does and takes",
      text = "Tells what a command does and takes; without one, what there is. As quern COMMAND --help.", options = {},
    },
    {
      name = "version", words = "", about = "print the versions of the program and of its library",
      text = "Prints the versions of the program and, if it is another, of its library. As quern --version.", options = {},
    },
  },
  notes = {
    { "Files", "NumPy's .npy, versions 1.0 to 3.0, little-endian, and .npz, as numpy.savez and numpy.savez_compressed write them. f16 is "
      .. "'<f2'; bf16, which NumPy has not, is '<V2', as ml_dtypes writes it: np.load(FILE).view(ml_dtypes.bfloat16). Outputs are "
      .. "written whole or not at all." },
    { "Exit status", "0: done. 1: it could not be done; one sentence on standard error says why. 2: the command line is wrong." },
    { "Environment", "QUERN_JIT, QUERN_NUM_THREADS, QUERN_ISA, QUERN_CACHE_DIR, QUERN_LOG and QUERN_PROFILE are as in every program that uses "
      .. "the library." },
  },
}
