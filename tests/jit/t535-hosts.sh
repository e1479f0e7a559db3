#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t535-hosts: the generator's module in hosts of many kinds: that define all of Lua's names, that run Debian's Lua, that have a
# malloc of their own, that have set a locale with a comma in numbers; modules that are none; and what it writes compiles.
# What it is given and how it builds hosts: support/plain_host.sh.
. "$(dirname "$0")/../support/plain_host.sh"
plain_host quern-gen

# ---- What every host does ---------------------------------------------------------------------------------------------
cat >"$work/use.h" <<'END'
#include "toolchain/generator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Writes what the generator says of one spec and one expression; "" and a word to stderr when it fails. */
static const char *use_generator(void) {
  static char all[16000];
  static const char spec[] = "unary \"acme.swish\" { doc = \"d\", params = { k = 1.5 }, dtypes = floating, body = [[ x * sigmoid(k * x) * 0.7 ]] }";
  static const char *const dtypes[] = {"f32", "f16"};
  qn_source_request request = {.symbol = "qj_0123456789abcdef", .canonical = "param p0 ; v0 = acme.swish ( x0 , 2.25 ) * 1e-3 + p0",
                               .dtypes = dtypes, .n_in = 1, .n_out = 1, .classes = "cc", .rank = 1};
  qn_generator *g = qn_generator_create();
  qn_spec_op **ops = NULL;
  qn_bytes program = {NULL, 0}, source = {NULL, 0};
  int32_t n = 0;
  all[0] = 0;
  if (qn_generator_load_spec(g, "a.lua", spec, sizeof spec - 1, &ops, &n) || n != 1 ||
      qn_generator_program(g, "acme.swish", "f32", &program) || qn_generator_source(g, &request, &source, NULL)) {
    fprintf(stderr, "%s\n", quern_last_error());
  } else {
    const int length = snprintf(all, sizeof all, "%s%s%llx\n", program.data, source.data,
                                (unsigned long long)ops[0]->rule.info.params[0].value.v.u);
    if (length >= (int)sizeof all) fprintf(stderr, "%d bytes do not fit\n", length);
  }
  while (n > 0) free(ops[--n]);
  free(ops);
  free(program.data);
  free(source.data);
  qn_generator_destroy(g);
  return all;
}
END
cat >"$work/plain.c" <<'END'
#include "use.h"
int main(void) {
  fputs(use_generator(), stdout);
  return 0;
}
END
compile plain "$work/plain.c"
ok $? "a plain host"
"$work/plain" >"$work/wanted" 2>"$said"
grep -q 'Q_KERNELS_END' "$work/wanted" && grep -q '^3ff8000000000000$' "$work/wanted"
ok $? "has its spec and its expression generated"
same() { # same PROGRAM: it writes the same
  "$work/$1" >"$work/got" 2>"$said" && cmp "$work/wanted" "$work/got" >>"$said" 2>&1
}

# ---- Hosts with Lua ---------------------------------------------------------------------------------------------------
lua=$(ldd "$module" | sed -n 's/.*liblua5\.4[^ ]* => \([^ ]*\).*/\1/p')
{
  printf '%s\n' '#include "use.h"' '#define TRAP(name) int name(void); int name(void) { fprintf(stderr, #name " of the host was called\n"); _Exit(99); }'
  nm -D --defined-only "$lua" | sed -n 's/^[0-9a-f]* [TR] \(luaL\{0,1\}_[A-Za-z_]*\).*/TRAP(\1)/p' | sort -u | grep -v lua_ident
  echo 'int main(void) { fputs(use_generator(), stdout); return 0; }'
} >"$work/impostor.c"
[ "$(grep -c '^TRAP(' "$work/impostor.c")" -gt 100 ]
ok $? "$(grep -c '^TRAP(' "$work/impostor.c") names that Lua's library defines"
compile impostor "$work/impostor.c"
ok $? "a host that defines all of them"
same impostor
ok $? "does not see one called"
flags=$(pkg-config --cflags --libs lua5.4 2>/dev/null)
if [ -n "$flags" ]; then
  cat >"$work/lua.c" <<'END'
#include "use.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
static int l_use(lua_State *L) {
  lua_pushstring(L, use_generator());
  return 1;
}
int main(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "use", l_use);
  int bad = luaL_dostring(L, "local kept = {}\n"
                             "for i = 1, 100 do kept[i] = string.rep('x', i) end\n"
                             "string.marker = 'host'\n"
                             "debug.sethook(function() end, '', 7)\n"
                             "local co = coroutine.wrap(function() for _ = 1, 2 do coroutine.yield(use()) end end)\n"
                             "local first = co()\n"
                             "assert(first == co() and first == use() and #first > 100)\n"
                             "assert(debug.gethook() and string.marker == 'host' and ('x'):rep(2) == 'xx')\n"
                             "collectgarbage()\n"
                             "for i = 1, 100 do assert(#kept[i] == i) end\n"
                             "return first");
  fputs(lua_tostring(L, -1) ? lua_tostring(L, -1) : "no string", stdout);
  lua_close(L);
  return bad;
}
END
  # shellcheck disable=SC2086
  compile lua "$work/lua.c" $flags
  ok $? "a host with Debian's Lua"
  same lua
  ok $? "calls from coroutines, and keeps its own hooks and tables"
else
  skip "a host with Debian's Lua" "pkg-config knows no lua5.4"
fi

# ---- A host with a malloc of its own ----------------------------------------------------------------------------------
cat >"$work/malloc.c" <<'END'
#include "use.h"
#include <errno.h>
#include <stdint.h>
/* Blocks of a static area, each behind its size: a block of another malloc's is noticed. */
static _Alignas(16) char area[64 << 20];
static size_t at;
static int is_own(const void *p) { return (const char *)p >= area && (const char *)p < area + sizeof area; }
void *malloc(size_t n) {
  if (n > sizeof area - at - 32) return errno = ENOMEM, NULL;
  size_t *block = (size_t *)(void *)(area + at);
  at += 16 + ((n + 15) & ~(size_t)15);
  *block = n;
  return block + 2;
}
void *calloc(size_t n, size_t m) {
  void *p = malloc(n * m);
  return p ? memset(p, 0, n * m) : NULL;
}
void free(void *p) {
  if (p && !is_own(p)) {
    fputs("a block that is not the host's was freed\n", stderr);
    abort();
  }
}
void *realloc(void *p, size_t n) {
  void *q = malloc(n);
  if (p && !is_own(p)) free(p);
  if (p && q) {
    size_t was = ((size_t *)p)[-2];
    memcpy(q, p, was < n ? was : n);
  }
  return q;
}
int main(void) {
  fputs(use_generator(), stdout);
  return 0;
}
END
compile malloc "$work/malloc.c"
ok $? "a host with its own malloc"
same malloc
ok $? "meets no memory of another's"

# ---- A host with a locale ---------------------------------------------------------------------------------------------
cat >"$work/locale.c" <<'END'
#include "use.h"
#include <locale.h>
int main(int argc, char **argv) {
  char number[20];
  if (!setlocale(LC_ALL, argv[argc - 1])) return 77;
  snprintf(number, sizeof number, "%.1f", 1.5);
  if (strcmp(number, "1,5")) return 77;
  fputs(use_generator(), stdout);
  snprintf(number, sizeof number, "%.1f", 2.5);
  return strcmp(number, "2,5") ? 1 : 0;
}
END
compile locale "$work/locale.c"
ok $? "a host that sets its locale"
mkdir "$work/locales"
if localedef -i de_DE -f UTF-8 "$work/locales/de_DE.UTF-8" >/dev/null 2>&1 || [ -d "$work/locales/de_DE.UTF-8" ]; then
  LOCPATH=$work/locales LC_ALL=de_DE.UTF-8 "$work/locale" de_DE.UTF-8 >"$work/got" 2>"$said" && cmp "$work/wanted" "$work/got" >>"$said" 2>&1
  ok $? "to de_DE.UTF-8 has the same numbers, and its locale afterwards"
else
  skip "to de_DE.UTF-8" "localedef makes no such locale"
fi

# ---- Modules that are none --------------------------------------------------------------------------------------------
says() { # says WORDS NAME: the plain host fails and says so
  "$work/plain" >"$work/got" 2>"$said"
  [ ! -s "$work/got" ] && grep -q "$1" "$said"
  ok $? "$2"
}
mkdir "$work/garbage" "$work/other" "$work/empty" "$work/folder" "$work/folder/quern-gen.so"
echo 'no ELF file' >"$work/garbage/quern-gen.so"
printf '%s\n' '#include <stdint.h>' 'const struct { uint32_t abi; const char *version; } quern_gen_module = {1, "of old"};' >"$work/other.c"
$CC -shared -fPIC "$work/other.c" -o "$work/other/quern-gen.so" 2>"$said"
ok $? "a module of another build"
QUERN_MODULE_DIR=$work/garbage says 'the generator cannot be used: .*quern-gen.so: .*; what is built works without it' "a file of another kind is refused"
QUERN_MODULE_DIR=$work/other says 'is of another build than this library' "and the other build's"
QUERN_MODULE_DIR=$work/empty says "quern-gen.so is not in $work/empty" "and none is said to be none"
QUERN_MODULE_DIR=$work/folder says 'quern-gen.so is not in' "a folder is no module"
cp "$module" "$work/empty/quern-gen.so"
(cd "$work/empty" && QUERN_MODULE_DIR=. ../plain >"$work/got" 2>"$said")
[ ! -s "$work/got" ] && grep -q 'quern-gen.so is not in /' "$said"
ok $? "a relative folder is not looked in, nor the working one"
mkdir "$work/quern"
cp "$module" "$work/quern/quern-gen.so"
QUERN_MODULE_DIR='' same plain
ok $? "the folder quern beside the program is found without being told"

# ---- The generator in the module is the one on disk -------------------------------------------------------------------
cat >"$work/all.c" <<'END'
#include "toolchain/generator.h"
#include <stdio.h>
#include <stdlib.h>
/* "op dtype" lines to programs. */
int main(void) {
  char op[100], dtype[100];
  qn_generator *g = qn_generator_create();
  while (scanf("%99s %99s", op, dtype) == 2) {
    qn_bytes program = {NULL, 0};
    if (qn_generator_program(g, op, dtype, &program)) {
      fprintf(stderr, "%s\n", quern_last_error());
      return 1;
    }
    printf("%s %s\n%s", op, dtype, program.data);
    free(program.data);
  }
  qn_generator_destroy(g);
  return 0;
}
END
cat >"$work/all.lua" <<'END'
local root, list, wanted = os.getenv "QUERN_SOURCE_DIR", io.open(arg[1], "w"), io.open(arg[2], "w")
package.path = root .. "/?.lua;" .. package.path
local main, service, variants = require "gen.main", require "gen.service", require "gen.targets.variants"
local kinds = require "gen.kinds.kinds"
local model = main.builtin_model(root)
local s, built = service.new { model = function() return model end }, {}
for _, t in ipairs(model.types.list) do built[t.name] = t.built or nil end
for _, op in ipairs(model.ops) do
  local has_program = next(op.bodies) ~= nil and not kinds.of(op).has_stages
  for _, K in ipairs(has_program and variants.kernel_dtypes(model.types, op, built) or {}) do
    list:write(op.name, " ", K, "\n")
    wanted:write(op.name, " ", K, "\n", (assert(s:program(op.name, K))))
  end
end
list:close()
wanted:close()
END
compile all "$work/all.c" && lua5.4 "$work/all.lua" "$work/ops" "$work/programs" 2>>"$said" && [ "$(wc -l <"$work/ops")" -gt 50 ]
ok $? "$(wc -l <"$work/ops") ops and types"
"$work/all" <"$work/ops" >"$work/got" 2>>"$said" && cmp "$work/programs" "$work/got" >>"$said" 2>&1
ok $? "the module has the programs that the generator on disk has"

# ---- Sources compile --------------------------------------------------------------------------------------------------
cat >"$work/write.c" <<'END'
#include "toolchain/generator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Each source into folder/N.c. */
static qn_generator *g;
static int n_written;
static void write_one(const char *folder, const char *text, const char *dtypes, int32_t n_in, const char *classes, int32_t rank) {
  char words[200], path[500], symbol[40];
  const char *list[32];
  int32_t n = 0;
  qn_bytes source = {NULL, 0};
  strcpy(words, dtypes);
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) list[n++] = word;
  snprintf(symbol, sizeof symbol, "qj_%016x", n_written);
  qn_source_request request = {.symbol = symbol, .canonical = text, .dtypes = list, .n_in = n_in, .n_out = n - n_in,
                               .classes = classes, .rank = rank};
  if (qn_generator_source(g, &request, &source, NULL)) {
    fprintf(stderr, "%s (%s): %s\n", text, dtypes, quern_last_error());
    exit(1);
  }
  snprintf(path, sizeof path, "%s/%d.c", folder, n_written++);
  FILE *file = fopen(path, "w");
  fwrite(source.data, 1, source.size, file);
  fclose(file);
  free(source.data);
}
int main(int argc, char **argv) {
  const char *folder = argv[argc - 1];
  static const char *const types[] = {"bool", "i32", "i64", "u8", "f16", "bf16", "f32", "f64"};
  char dtypes[200];
  g = qn_generator_create();
  for (int a = 0; a < 8; a++) {
    for (int b = 0; b < 8; b++) {
      snprintf(dtypes, sizeof dtypes, "%s %s f64 bool", types[a], types[b]);
      write_one(folder, "v0 = ( x0 ? ( f32 ) x1 : ( f32 ) x0 ) * 0.5 ; v1 = x0 == x1", dtypes, 2, "cbcc", 2);
      snprintf(dtypes, sizeof dtypes, "%s %s", types[a], types[b]);
      if (b >= a || b >= 4 || (a && a < 4 && b)) write_one(folder, "x0", dtypes, 1, "sc", 1);
    }
    snprintf(dtypes, sizeof dtypes, "%s %s f16", types[a], types[a]);
    write_one(folder, "where ( x0 > x1 , ( f16 ) x0 , ( f16 ) ( x0 == x1 ) )", dtypes, 2, "ccc", 1);
    if (!a) continue;
    write_one(folder, "param p0 ; param p1 ; maximum ( x0 * x1 + p1 , p0 ) + x0 * p0", dtypes, 2, "ccs", 1);
    write_one(folder, "param p0 ; gelu ( x0 ) + pow ( ( f32 ) x1 , p0 )", dtypes, 2, "bcc", 1);
  }
  write_one(folder, "( f32 ) 1", "f16", 0, "c", 1);
  write_one(folder, "param p0 ; where ( x0 , p0 , x1 )", "bool bool bool", 2, "cbc", 2);
  write_one(folder, "param p0 ; ( f32 ) p0", "f64", 0, "s", 2);
  write_one(folder, "v0 = x0 ; v1 = x0 ; v2 = - x0 ; v3 = x0 > 0", "f32 f16 f32 f64 u8", 1, "ccscc", 2);
  write_one(folder, "( i16 ) x0 * 3 + ( u16 ) x0 / ( i8 ) x0 + ( u64 ) x0", "f64 f64", 1, "cc", 1);
  write_one(folder, "v0 = ( i32 ) x0 << 40 ; v1 = ( u32 ) x1 >> x2 ; v2 = as_f32 ( as_u32 ( x0 ) ^ 0x80000000 )", "f32 u8 i64 i32 i64 f32", 3, "cccccc", 1);
  write_one(folder, "pow ( x0 , x1 ) + exp ( x0 ) * tanh ( x1 ) - erf ( x0 ) + sigmoid ( x1 ) + log ( x0 )", "f64 f64 f64", 2, "ccc", 1);
  write_one(folder, "f32 v0 = x1 ; v1 = x0 * 2", "f16 f32 f16", 2, "ccc", 1);
  printf("%d\n", n_written);
  return 0;
}
END
compile write "$work/write.c" && mkdir "$work/sources" && "$work/write" "$work/sources" >"$work/count" 2>>"$said"
ok $? "sources of $(cat "$work/count" 2>/dev/null) kernels"
# all kernels of a level are of one translation unit's flags; kernel.h is each one's own. A sixth of them each day.
compiles() { # compiles COMPILER FLAGS...
  number=0
  for file in "$work"/sources/*.c; do
    number=$((number + 1))
    in_part $number 6 >>"$work/day" || continue
    "$@" -std=c11 -c -O1 -Wall -Wextra -Werror -DQ_NO_PACK -I"$QUERN_SOURCE_DIR/templates/c/headers" "$file" -o "$work/out.o" 2>>"$said" || {
      grep -h 'expression' "$file" >>"$said"
      return 1
    }
  done
}
compiles "$CC"
ok $? "$CC compiles them without a warning"
if command -v clang-19 >/dev/null 2>&1; then
  compiles clang-19 -mavx2 -mfma -mf16c -fsyntax-only
  ok $? "clang-19 does, for another level"
else
  skip "clang-19" "it is not here"
fi

done_testing
