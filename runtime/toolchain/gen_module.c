/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_module.c: the module quern-gen: a sandboxed Lua state (no io, no os) with a memory limit, and the generator in it as
 * bytecode. Errors leave it only as answers. See gen_module.h. */
#include "toolchain/gen_module.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>

#include "toolchain/gen_embedded.h"

/* The memory limit, for untrusted specs; the library's own work takes some 5 MB. */
#define MOST_BYTES ((size_t)256 << 20)

struct quern_gen_state {
  lua_State *lua;
  void *(*resize)(void *memory, size_t size);
  size_t used;
  jmp_buf panic;
  int is_dead;
};

/* A request and its answer, for the function that runs in protected mode. */
typedef struct service_call {
  quern_gen_state *state;
  const char *method;
  const char *name, *text; /* load_spec, derivative, program */
  size_t size;
  const quern_gen_request *request; /* source */
  int32_t *items_per_thread;                    /* source */
  const quern_gen_limits *limits;               /* open */
  quern_gen_kind kind;
  quern_gen_answer *answer;
} service_call;

static void *allocate(void *owner, void *memory, size_t old_size, size_t size) {
  quern_gen_state *state = owner;
  if (!memory) old_size = 0; /* for new blocks Lua passes the kind of object here */
  if (size > old_size && size - old_size > MOST_BYTES - state->used) return NULL;
  void *result = size || memory ? state->resize(memory, size) : NULL;
  if (!result && size) {
    if (size > old_size) return NULL;
    result = memory; /* Lua requires that shrinking never fails */
  }
  state->used += size - old_size;
  return result;
}

/* An error outside of protected mode; none is known. */
static int on_panic(lua_State *lua) {
  void *owner;
  lua_getallocf(lua, &owner);
  longjmp(((quern_gen_state *)owner)->panic, 1);
}

/* Copies the answer into memory from the host's `resize`. */
static int give(quern_gen_state *state, const char *text, size_t size, quern_gen_answer *answer) {
  answer->text = state->resize(NULL, size + 1);
  answer->size = 0;
  if (!answer->text) return 0;
  memcpy(answer->text, text, size);
  answer->text[size] = 0;
  answer->size = size;
  return 1;
}

static void say(service_call *call, quern_gen_kind kind, const char *text) {
  give(call->state, text, strlen(text), call->answer);
  call->kind = kind;
}

/* ---- Files ---- */

static const qn_embedded_file *find_file(const char *name) {
  int low = 0, high = qn_n_embedded_files;
  while (low < high) {
    const int middle = (low + high) / 2, side = strcmp(name, qn_embedded_files[middle].name);
    if (side == 0) return &qn_embedded_files[middle];
    if (side < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

/* Pushes a chunk of bytecode as a function. */
static void push_chunk(lua_State *lua, const char *name) {
  const qn_embedded_file *file = find_file(name);
  if (!file) luaL_error(lua, "module '%s' is not part of the generator", name);
  if (luaL_loadbufferx(lua, (const char *)file->bytes, file->size, name, "b")) lua_error(lua);
}

/* require(name): runs a chunk once. Upvalue 1: the table of results, by name. */
static int l_require(lua_State *lua) {
  const char *name = luaL_checkstring(lua, 1);
  lua_settop(lua, 1);
  if (lua_getfield(lua, lua_upvalueindex(1), name) != LUA_TNIL) return 1;
  push_chunk(lua, name);
  lua_call(lua, 0, 1);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, lua_upvalueindex(1), name);
  return 1;
}

/* read(name) -> the text of a file. */
static int l_read(lua_State *lua) {
  const qn_embedded_file *file = find_file(luaL_checkstring(lua, 1));
  if (!file) return luaL_error(lua, "no file '%s'", lua_tostring(lua, 1));
  lua_pushlstring(lua, (const char *)file->bytes, file->size);
  return 1;
}

/* The expected bytes of a dump that are left to compare. */
typedef struct expected {
  const unsigned char *bytes;
  size_t left;
} expected;

static int compare(lua_State *lua, const void *bytes, size_t size, void *arg) {
  expected *expected = arg;
  (void)lua;
  if (size > expected->left || memcmp(bytes, expected->bytes, size) != 0) return 1;
  expected->bytes += size;
  expected->left -= size;
  return 0;
}

/* Whether this Lua compiles a text to the same bytecode as the Lua of the build: then it can run the build's bytecode. */
static int is_right_lua(lua_State *lua) {
  const qn_embedded_file *text = find_file("canary.lua"), *bytecode = find_file("canary");
  expected expected = {bytecode->bytes, bytecode->size};
  if (luaL_loadbufferx(lua, (const char *)text->bytes, text->size, "=canary", "t")) lua_error(lua);
  const int differs = lua_dump(lua, compare, &expected, 1) || expected.left;
  lua_pop(lua, 1);
  return !differs;
}

/* ---- What runs protected ---- */

/* Opens Lua's libraries without the functions that read files or print, and with only the part of debug that is needed. */
static void open_libraries(lua_State *lua) {
  static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},        {LUA_TABLIBNAME, luaopen_table},
                                       {LUA_STRLIBNAME, luaopen_string}, {LUA_MATHLIBNAME, luaopen_math},
                                       {LUA_UTF8LIBNAME, luaopen_utf8},  {LUA_DBLIBNAME, luaopen_debug},
                                       {NULL, NULL}};
  static const char *const unwanted[] = {"dofile", "loadfile", "print", "warn", NULL};
  static const char *const wanted_of_debug[] = {"sethook", "gethook", "getinfo", "getmetatable", "setmetatable", NULL}; /* sandbox.lua's */
  for (const luaL_Reg *library = libraries; library->func; library++) {
    luaL_requiref(lua, library->name, library->func, 1);
    lua_pop(lua, 1);
  }
  for (const char *const *name = unwanted; *name; name++) {
    lua_pushnil(lua);
    lua_setglobal(lua, *name);
  }
  lua_getglobal(lua, LUA_DBLIBNAME);
  lua_createtable(lua, 0, 4);
  for (const char *const *name = wanted_of_debug; *name; name++) {
    lua_getfield(lua, -2, *name);
    lua_setfield(lua, -2, *name);
  }
  lua_setglobal(lua, LUA_DBLIBNAME);
  lua_pop(lua, 1);
  lua_createtable(lua, 0, 32);
  lua_pushcclosure(lua, l_require, 1);
  lua_setglobal(lua, "require");
}

static int run_open(lua_State *lua) {
  static atomic_int is_checked; /* once a process */
  service_call *call = lua_touserdata(lua, 1);
  open_libraries(lua);
  if (!atomic_load_explicit(&is_checked, memory_order_relaxed)) {
    if (!is_right_lua(lua)) {
      say(call, QUERN_GEN_UNUSABLE,
          "the Lua library found is not of the version that this module was built with (" LUA_RELEASE ")");
      return 0;
    }
    atomic_store_explicit(&is_checked, 1, memory_order_relaxed);
  }
  push_chunk(lua, "boot");
  lua_pushcfunction(lua, l_read);
  lua_createtable(lua, 0, 3);
  lua_pushinteger(lua, call->limits->nodes);
  lua_setfield(lua, -2, "nodes");
  lua_pushinteger(lua, call->limits->cost);
  lua_setfield(lua, -2, "cost");
  lua_pushinteger(lua, call->limits->steps);
  lua_setfield(lua, -2, "steps");
  lua_call(lua, 2, 1);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, call->state); /* the service */
  call->kind = QUERN_GEN_OK;
  return 0;
}

static void push_request(lua_State *lua, const quern_gen_request *request) {
  lua_createtable(lua, 0, 10);
  lua_pushstring(lua, request->symbol);
  lua_setfield(lua, -2, "symbol");
  lua_pushstring(lua, request->canonical);
  lua_setfield(lua, -2, "canonical");
  lua_pushstring(lua, request->classes);
  lua_setfield(lua, -2, "classes");
  lua_pushinteger(lua, request->rank);
  lua_setfield(lua, -2, "rank");
  lua_pushstring(lua, request->target); /* NULL becomes nil, for all of these */
  lua_setfield(lua, -2, "target");
  lua_pushstring(lua, request->op);
  lua_setfield(lua, -2, "op");
  lua_pushboolean(lua, request->is_wide);
  lua_setfield(lua, -2, "is_wide");
  lua_pushboolean(lua, request->cost != NULL);
  lua_setfield(lua, -2, "is_bounded");
  lua_pushinteger(lua, request->n_in);
  lua_setfield(lua, -2, "n_in");
  lua_createtable(lua, request->n_in + request->n_out, 0);
  for (int32_t k = 0; k < request->n_in + request->n_out; k++) {
    lua_pushstring(lua, request->dtypes[k]);
    lua_rawseti(lua, -2, k + 1);
  }
  lua_setfield(lua, -2, "dtypes");
}

static quern_gen_kind kind_of(const char *word) {
  static const struct {
    const char *word;
    quern_gen_kind kind;
  } kinds[] = {{"syntax", QUERN_GEN_SYNTAX}, {"dtype", QUERN_GEN_DTYPE},       {"limit", QUERN_GEN_LIMIT},
               {"exists", QUERN_GEN_EXISTS}, {"notfound", QUERN_GEN_NOTFOUND}, {"unsupported", QUERN_GEN_UNSUPPORTED},
               {"memory", QUERN_GEN_MEMORY}};
  for (size_t i = 0; word && i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(word, kinds[i].word) == 0) return kinds[i].kind;
  return QUERN_GEN_BUG;
}

static int run_request(lua_State *lua) {
  service_call *call = lua_touserdata(lua, 1);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, call->state);
  lua_getfield(lua, -1, call->method);
  lua_insert(lua, -2);
  int n_args = 2;
  if (call->request) {
    push_request(lua, call->request);
  } else if (!call->name) {
    n_args = 1;
  } else {
    lua_pushstring(lua, call->name);
    lua_pushlstring(lua, call->text, call->size);
    n_args = 3;
  }
  lua_call(lua, n_args, 3);
  size_t size;
  const char *text = lua_tolstring(lua, -3, &size);
  call->kind = QUERN_GEN_OK;
  if (text && call->items_per_thread) *call->items_per_thread = (int32_t)lua_tointeger(lua, -2);
  if (text && call->request && call->request->cost) *call->request->cost = (int64_t)lua_tointeger(lua, -1);
  if (!text) {
    call->kind = kind_of(lua_tostring(lua, -2));
    text = lua_tolstring(lua, -1, &size);
  }
  if (text && !give(call->state, text, size, call->answer)) call->kind = QUERN_GEN_MEMORY;
  return 0;
}

/* ---- Entries ---- */

/* Not inlined: a longjmp back here must not find values of the caller's in registers. */
__attribute__((noinline)) static void protect(service_call *call, lua_CFunction function) {
  quern_gen_state *state = call->state;
  lua_State *lua = state->lua;
  call->kind = QUERN_GEN_BUG;
  *call->answer = (quern_gen_answer){NULL, 0};
  if (state->is_dead) {
    say(call, QUERN_GEN_BUG, "the generator failed before, and cannot go on");
    return;
  }
  if (_setjmp(state->panic)) {
    state->is_dead = 1;
    say(call, QUERN_GEN_BUG, "the generator failed");
    return;
  }
  lua_settop(lua, 0);
  if (!lua_checkstack(lua, 8)) {
    call->kind = QUERN_GEN_MEMORY;
    return;
  }
  lua_pushcfunction(lua, function);
  lua_pushlightuserdata(lua, call);
  const int status = lua_pcall(lua, 1, 0, 0);
  if (status == LUA_ERRMEM) {
    call->kind = QUERN_GEN_MEMORY;
  } else if (status) {
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL; /* a number would be converted in place */
    say(call, QUERN_GEN_BUG, text ? text : "the generator failed");
  }
  lua_settop(lua, 0);
}

static void close_state(quern_gen_state *state) {
  if (state->lua && !state->is_dead && _setjmp(state->panic) == 0) lua_close(state->lua);
  state->resize(state, 0);
}

static quern_gen_kind open_state(void *(*resize)(void *memory, size_t size), const quern_gen_limits *limits,
                                 quern_gen_state **result, quern_gen_answer *answer) {
  *result = NULL;
  *answer = (quern_gen_answer){NULL, 0};
  quern_gen_state *state = resize(NULL, sizeof *state);
  if (!state) return QUERN_GEN_MEMORY;
  *state = (quern_gen_state){.resize = resize};
  state->lua = lua_newstate(allocate, state);
  if (!state->lua) {
    close_state(state);
    return QUERN_GEN_MEMORY;
  }
  lua_atpanic(state->lua, on_panic);
  service_call call = {.state = state, .limits = limits, .answer = answer};
  protect(&call, run_open);
  if (call.kind == QUERN_GEN_OK)
    *result = state;
  else
    close_state(state);
  return call.kind;
}

static quern_gen_kind load_spec(quern_gen_state *state, const char *name, const char *text, size_t size,
                                quern_gen_answer *answer) {
  service_call call = {.state = state, .method = "load_spec", .name = name, .text = text, .size = size, .answer = answer};
  protect(&call, run_request);
  return call.kind;
}

static quern_gen_kind derivative(quern_gen_state *state, const char *op, quern_gen_answer *answer) {
  service_call call = {.state = state, .method = "derivative", .name = op, .text = "", .answer = answer};
  protect(&call, run_request);
  return call.kind;
}

static void forget(quern_gen_state *state) {
  quern_gen_answer answer;
  service_call call = {.state = state, .method = "forget", .answer = &answer};
  protect(&call, run_request);
  state->resize(answer.text, 0);
}

static quern_gen_kind program(quern_gen_state *state, const char *op, const char *kernel_dtype, quern_gen_answer *answer) {
  service_call call = {.state = state, .method = "program", .name = op, .text = kernel_dtype, .size = strlen(kernel_dtype),
             .answer = answer};
  protect(&call, run_request);
  return call.kind;
}

static quern_gen_kind source(quern_gen_state *state, const quern_gen_request *request, quern_gen_answer *answer,
                             int32_t *items_per_thread) {
  service_call call = {.state = state, .method = "source", .request = request, .items_per_thread = items_per_thread,
                       .answer = answer};
  protect(&call, run_request);
  return call.kind;
}

__attribute__((visibility("default"))) extern const quern_gen_interface quern_gen_module;
const quern_gen_interface quern_gen_module = {QUERN_GEN_ABI, QUERN_GEN_VERSION, open_state, close_state,
                                           load_spec,     derivative,        forget,     program,    source};
