#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t320-host-lua: a host that embeds a Lua of its own does not notice the library, nor the library the host's: one host
# with Debian's Lua, exporting all its symbols, and one that defines functions of Lua's names which must never be called.
# QUERN_BUILD_DIR: where the libraries are; QUERN_SOURCE_DIR: the repository. Prints TAP.
LC_ALL=C
export LC_ALL
. "$(dirname "$0")/../support/tap.sh"

: "${QUERN_BUILD_DIR:?the folder of libquern.so}" "${QUERN_SOURCE_DIR:?the repository}"
CC=${CC:-cc}
work=$(mktemp -d) || bail "no temporary folder"
trap 'rm -rf "$work"' EXIT
said=$work/log
echo "TAP version 13"
skip_sanitised "$QUERN_BUILD_DIR/libquern.so"
headers="-I$QUERN_SOURCE_DIR/include -I$QUERN_BUILD_DIR/generated"
link="-L$QUERN_BUILD_DIR -Wl,-rpath,$QUERN_BUILD_DIR -lquern"

# What either host does with the library: ops, contexts, and every function that may one day run a generator.
cat >"$work/use.h" <<'END'
#include <quern/quern.h>
#include <string.h>
static int use_quern(void) {
  float a[4] = {1, -2, 3, -4}, c[4];
  int64_t n = 4;
  DLTensor x, z, *in[1], *out[1];
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  quern_status s;
  static const char spec[] = "unary \"twice\" { doc = \"2 x\", dtypes = floating, body = [[ x + x ]], examples = { { x = 1.0, y = 2.0 } } }";
  memset(&x, 0, sizeof x);
  x.data = a;
  x.device.device_type = kDLCPU;
  x.ndim = 1;
  x.dtype.code = 2;
  x.dtype.bits = 32;
  x.dtype.lanes = 1;
  x.shape = &n;
  z = x;
  z.data = c;
  in[0] = &x;
  out[0] = &z;
  if (quern_ctx_create(NULL, &ctx) || quern_op_find(ctx, "abs", &op) || quern_op_call(op, 1, in, 1, out, NULL)) return 1;
  if (c[1] != 2 || c[3] != 4) return 2;
  quern_op_release(op);
  s = quern_spec_load_text(ctx, "twice.lua", spec, sizeof spec - 1);
  if (s != QUERN_OK && s != QUERN_E_UNSUPPORTED) return 3;
  op = NULL;
  s = quern_op_compile(ctx, "y = x * x + 1", &op);
  if (s == QUERN_OK && (quern_op_call(op, 1, in, 1, out, NULL) || c[3] != 17)) return 4;
  if (s != QUERN_OK && s != QUERN_E_UNSUPPORTED) return 5;
  quern_op_release(op);
  quern_ctx_release(ctx);
  return 0;
}
END

# ---- A host of Lua's names ------------------------------------------------------------------------------------------
cat >"$work/impostor.c" <<'END'
#include "use.h"
#include <stdio.h>
#include <stdlib.h>
#define TRAP(name) int name(void) { fprintf(stderr, #name " of the host was called\n"); exit(99); }
TRAP(lua_newstate) TRAP(luaL_newstate) TRAP(lua_close) TRAP(lua_pcallk) TRAP(lua_callk) TRAP(luaL_openlibs) TRAP(luaL_loadbufferx)
TRAP(lua_load) TRAP(lua_gettop) TRAP(lua_settop) TRAP(lua_pushstring) TRAP(lua_createtable) TRAP(lua_setfield) TRAP(lua_getfield) TRAP(lua_tolstring)
int main(void) {
  int bad = use_quern();
  puts(bad ? "bad" : "fine");
  return bad;
}
END
$CC -rdynamic -Wall -Wextra $headers -I"$work" "$work/impostor.c" -o "$work/impostor" $link >"$said" 2>&1
ok $? "a host that exports functions of Lua's names"
[ "$("$work/impostor" 2>>"$said")" = fine ]
ok $? "none of them is called"

# ---- A host with a real Lua -----------------------------------------------------------------------------------------
flags=$(pkg-config --cflags --libs lua5.4 2>/dev/null)
if [ -n "$flags" ]; then
  cat >"$work/host.c" <<'END'
#include "use.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
static int l_quern(lua_State *L) {
  lua_pushinteger(L, use_quern());
  return 1;
}
int main(void) {
  int bad;
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "quern", l_quern);
  bad = luaL_dostring(L, "local kept = {}\n"
                         "for i = 1, 100 do kept[i] = string.rep('x', i) end\n"
                         "string.marker = 'host'\n"
                         "local co = coroutine.wrap(function() for _ = 1, 3 do coroutine.yield(quern()) end end)\n"
                         "for _ = 1, 3 do assert(co() == 0) end\n"
                         "collectgarbage()\n"
                         "for i = 1, 100 do assert(#kept[i] == i) end\n"
                         "assert(string.marker == 'host' and not pcall(error, 'x') and quern() == 0)\n"
                         "return 'fine'");
  puts(lua_tostring(L, -1) ? lua_tostring(L, -1) : "no string");
  lua_close(L);
  return bad || use_quern();
}
END
  $CC -rdynamic -Wall -Wextra $headers -I"$work" "$work/host.c" -o "$work/host" $link $flags >"$said" 2>&1
  ok $? "a host with Debian's Lua 5.4"
  [ "$("$work/host" 2>&1 | tee "$said")" = fine ]
  ok $? "runs its script, calls the library from coroutines, and closes"
else
  skip "a host with Debian's Lua 5.4" "pkg-config knows no lua5.4: liblua5.4-dev is not installed"
fi

readelf -d "$QUERN_BUILD_DIR/libquern.so" >"$said"
! grep -qi 'NEEDED.*lua' "$said"
ok $? "the library itself is not linked with Lua"

done_testing
