-- SPDX-License-Identifier: Apache-2.0
--
-- tags: long
-- t040-variants: the whole matrix that --variants full writes. Every kernel of every rank, class and level is called
-- directly on a problem of its own rank and compared with loops that share nothing with the templates; the filters
-- --rank and --class leave what they name, and the contiguous kernel that serves the rest. Calls find the kernels of f16. A day has
-- one of the levels.

local root = os.getenv "QUERN_SOURCE_DIR" or "."
package.path = root .. "/tests/support/?.lua;" .. package.path
local shell = require "shell"
local tap = require "tap"

local folder = shell.folder()
local run, read = shell.run, shell.read

local function generate(out, options)
  return run(string.format("lua5.4 %s/build.lua generate --out %s/%s --prefix whole %s", root, folder, out, options))
end

-- name, op, dtypes, rank, classes, isa of each kernel of a tree
local function kernels_of(out)
  local list = {}
  for name, op, dtypes, rank, classes, isa in read(folder .. "/" .. out .. "/manifest.json"):gmatch
    '{"name": "([^"]+)", "op": "([^"]+)", "dtypes": %[([^%]]*)%], "rank": "([^"]+)", "classes": "([^"]+)", "isa": "([^"]+)"' do
    local types = {}
    for t in dtypes:gmatch '"([^"]+)"' do types[#types + 1] = t end
    list[#list + 1] = { name = name, op = op, dtypes = types, rank = rank, classes = classes, isa = isa }
  end
  return list
end

local ok, text = generate("full", "--variants full --ops add,where,relu --dtypes f32,f16,i64")
tap.ok(ok, "the full matrix of add, where, relu is written")
if not ok then tap.diag("%s", text) end

-- One C program that calls every kernel of the ops themselves.
local SIZE = { bool = 1, f16 = 2, f32 = 4, i64 = 8, b8 = 1, b16 = 2, b32 = 4, b64 = 8 }
local calls, declarations, n_kernels = {}, {}, 0
local part = tap.test_part(3)
local level = part and ({ [0] = "v2", "v3", "v4" })[part]
for _, kernel in ipairs(kernels_of "full") do
  if (kernel.op == "add" or kernel.op == "where" or kernel.op == "relu") and (kernel.isa == "generic") == (level ~= nil) then
    if level then kernel.isa = level end
    n_kernels = n_kernels + 1
    declarations[#declarations + 1] = string.format("whole_qn_kernel %s;", kernel.name)
    local sizes = {}
    for k, t in ipairs(kernel.dtypes) do sizes[k] = SIZE[t] end
    calls[#calls + 1] = string.format('  check("%s", %s, \'%s\', "%s", "%s", %d, (const int[]){%s}, %s);', kernel.name, kernel.name,
      kernel.op:sub(1, 1), kernel.dtypes[#kernel.dtypes], kernel.classes, kernel.rank == "n" and 5 or tonumber(kernel.rank),
      table.concat(sizes, ", "), kernel.isa == "v4" and "4" or kernel.isa == "v3" and "3" or "2")
  end
end
local program = [==[
#include "core/whole_kernel_abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
]==] .. table.concat(declarations, "\n") .. [==[

enum { MAX = 4096 };
static int failures;

/* small whole numbers: exact in every dtype */
static double get(const char *p, const char *t) {
  if (!strcmp(t, "f32") ) { float f; memcpy(&f, p, 4); return f; }
  if (!strcmp(t, "i64") || !strcmp(t, "b64")) { int64_t i; memcpy(&i, p, 8); return (double)i; }
  if (!strcmp(t, "f16")) {
    uint16_t h; memcpy(&h, p, 2);
    double m = (h & 1023) / 1024.0 + 1, v = h & 0x7fff ? m * (double)(1ll << ((h >> 10 & 31) - 15 + 20)) / (1 << 20) : 0;
    return h & 0x8000 ? -v : v;
  }
  if (!strcmp(t, "b32")) { uint32_t u; memcpy(&u, p, 4); return u; }
  if (!strcmp(t, "b16")) { uint16_t u; memcpy(&u, p, 2); return u; }
  return *(const unsigned char *)p;
}
static void put(char *p, const char *t, int v) {
  if (!strcmp(t, "f32")) { float f = (float)v; memcpy(p, &f, 4); }
  else if (!strcmp(t, "i64")) { int64_t i = v; memcpy(p, &i, 8); }
  else if (!strcmp(t, "f16")) {
    uint16_t h = 0; int a = v < 0 ? -v : v, e = 0;
    if (a) { while (a >> (e + 1)) e++; h = (uint16_t)((e + 15) << 10 | ((a << (10 - e)) & 1023)); }
    if (v < 0) h |= 0x8000;
    memcpy(p, &h, 2);
  } else { uint64_t u = (uint64_t)(v + 100); memcpy(p, &u, !strcmp(t, "b64") ? 8 : !strcmp(t, "b32") ? 4 : !strcmp(t, "b16") ? 2 : 1); }
}

static void check(const char *name, whole_qn_kernel *kernel, char op, const char *type, const char *classes, int rank, const int *sizes, int level) {
  static char memory[4][MAX * 8];
  static const int64_t extent[5] = {7, 3, 4, 2, 3};
  int n = (int)strlen(classes);
  int64_t at[4][5], count = 1;
  if ((level == 4 && !__builtin_cpu_supports("avx512bw")) || (level == 3 && !__builtin_cpu_supports("avx2"))) return;
  for (int d = 0; d < rank; d++) count *= extent[d];
  char *ptr[4];
  for (int k = 0; k < n; k++) {
    int64_t step = classes[k] == 'b' ? 0 : classes[k] == 'c' ? sizes[k] : 2 * sizes[k], next = step * extent[0];
    if (next == 0) next = sizes[k];
    at[k][0] = step;
    for (int d = 1; d < rank; d++) {
      at[k][d] = next;
      next *= extent[d];
    }
    ptr[k] = memory[k];
    memset(memory[k], 0x77, sizeof memory[k]);
    if (k < n - 1)
      for (int64_t i = 0; i < MAX; i++) {
        if (op == 'w' && k == 0) memory[k][i] = (char)(i * 7 % 3);
        else put(memory[k] + i * sizes[k], type, (int)(i * 37 % 41) - 20 + k);
      }
  }
  int64_t pairs[3 * 4][2] = {{0}}, extents[8] = {1, 1, 0, 0, 0, 0, 0, 0};
  for (int d = 0; d < rank; d++) {
    extents[d] = extent[d];
    for (int k = 0; k < n; k++) pairs[(d / 2) * n + k][d % 2] = at[k][d];
  }
  kernel(ptr, (const int64_t(*)[2])pairs, extents, NULL);
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, offset[4] = {0, 0, 0, 0};
    for (int d = 0; d < rank; d++) {
      for (int k = 0; k < n; k++) offset[k] += rest % extent[d] * at[k][d];
      rest /= extent[d];
    }
    double a = op == 'w' ? 0 : get(memory[0] + offset[0], type), wanted;
    if (op == 'a') wanted = a + get(memory[1] + offset[1], type);
    else if (op == 'r') wanted = a > 0 ? a : 0;
    else wanted = memory[0][offset[0]] ? get(memory[1] + offset[1], type) : get(memory[2] + offset[2], type);
    double got = get(memory[n - 1] + offset[n - 1], type);
    if (got != wanted) {
      printf("%s: element %lld: got %g, wanted %g\n", name, (long long)i, got, wanted);
      failures++;
      return;
    }
  }
}

/* A call of f16 tensors is run by the kernel that stores f16, one of mixed dtypes by blocks around the f32 one. */
static void check_stored(int is_mixed, const char *variant) {
  char memory[3][4 * 90], how[2000];
  const char *types[3] = {"f16", is_mixed ? "f32" : "f16", is_mixed ? "f32" : "f16"};
  int64_t n = 90;
  DLTensor t[3], *in[2] = {&t[0], &t[1]}, *out = &t[2];
  whole_op *op = NULL;
  for (int k = 0; k < 3; k++) {
    uint8_t bytes = !strcmp(types[k], "f16") ? 2 : 4;
    t[k] = (DLTensor){.data = memory[k], .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, (uint8_t)(8 * bytes), 1}, .shape = &n};
    for (int i = 0; i < n; i++) put(memory[k] + i * bytes, types[k], i - 40 * k);
  }
  int bad = whole_op_find(NULL, "add", &op) || whole_op_explain(op, 2, in, 1, &out, NULL, how, sizeof how) || !strstr(how, variant) ||
            whole_op_call(op, 2, in, 1, &out, NULL);
  for (int i = 0; i < n && !bad; i++) bad = get(memory[2] + i * (is_mixed ? 4 : 2), types[2]) != 2 * i - 40;
  if (bad) printf("%s: %s\n%s\n", variant, whole_last_error(), how);
  failures += bad;
}

int main(void) {
  check_stored(0, "add_f16_f16_f16_2d_ccc");
  check_stored(1, "add_f32_f32_f32_2d_ccc");
]==] .. table.concat(calls, "\n") .. "\n  return failures != 0;\n}\n"
local file = assert(io.open(folder .. "/full/program.c", "w"))
file:write(program)
file:close()
local optimised = (tap.test_part(4) or 0) == 0 and "-O1" or "-O0" -- every fourth day
ok, text = run(string.format("%s sh %s/tests/support/build-tree.sh gcc %s/full %s/objects -std=c11 %s -Wall -Wextra -Werror%s",
                             level and "QUERN_TREE_LEVEL=" .. level or "", root, folder, folder, optimised,
                             level and " -DWHOLE_QN_ONE_LEVEL" or ""))
tap.ok(ok, "it compiles without a warning")
if not ok then tap.diag("%s", text:sub(1, 2000)) end
ok, text = run(string.format("gcc -std=gnu11 -O1 -I%s/full -I%s/full/core %s/full/program.c %s/objects/*.o -o %s/program -pthread && %s/program",
                             folder, folder, folder, folder, folder, folder))
tap.ok(ok and n_kernels > 1000, "%d kernels of all ranks, classes and %s give what plain loops give", n_kernels,
       level or "levels")
if not ok then tap.diag("%s", text:sub(1, 3000)) end

ok = generate("some", "--variants full --ops add --dtypes f32 --rank 1,n --class contiguous,s")
tap.ok(ok, "--rank and --class are taken")
local others, has_contiguous = {}, false
for _, kernel in ipairs(kernels_of "some") do
  if kernel.op == "add" then
    if kernel.rank ~= "1" and kernel.rank ~= "n" or kernel.classes:find "b" then others[#others + 1] = kernel.name end
    has_contiguous = has_contiguous or kernel.classes == "ccc"
  end
end
tap.ok(#others == 0 and has_contiguous, "they leave what they name: %s", table.concat(others, " "))
ok = generate("few", "--ops add --dtypes f32 --class s")
local found = {}
for _, kernel in ipairs(kernels_of "few") do
  if kernel.op == "add" and kernel.isa == "v3" then found[#found + 1] = kernel.classes end
end
table.sort(found)
tap.is(table.concat(found, " "), "ccc sss", "the contiguous kernel stays: it serves what no other variant fits")

os.execute("rm -rf " .. folder)
tap.done_testing()
