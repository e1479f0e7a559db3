/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_library.c: see tvm_ffi_library.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "abi/tvm_ffi_library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

/* Whoever calls by tvm-ffi has loaded the library, globally or for itself alone. Another copy is never loaded: its
 * streams and errors would be others. */
static void *find_tvm_symbol(const char *name, void *_Atomic *found) {
  void *symbol = *found, *library;
  if (symbol) return symbol;
  symbol = dlsym(RTLD_DEFAULT, name);
  if (!symbol && (library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD)) != NULL) symbol = dlsym(library, name);
  *found = symbol;
  return symbol;
}

/* (ISO C has no conversion of object pointers to functions'; POSIX gives both one representation.) */
#define TVM_FINDER(function, symbol)                                                                                             \
  qn_tvm_##function *qn_tvm_find_##function(void) {                                                                              \
    static void *_Atomic found;                                                                                                  \
    const union {                                                                                                                \
      void *symbol_address;                                                                                                      \
      qn_tvm_##function *callable;                                                                                               \
    } both = {find_tvm_symbol("TVMFFI" symbol, &found)};                                                                         \
    return both.callable;                                                                                                        \
  }
TVM_FINDER(error_set_raised, "ErrorSetRaisedFromCStr")
TVM_FINDER(env_get_stream, "EnvGetStream")
TVM_FINDER(env_get_allocator, "EnvGetDLPackManagedTensorAllocator")
TVM_FINDER(tensor_from_dlpack, "TensorFromDLPackVersioned")
TVM_FINDER(string_from_bytes, "StringFromByteArray")
TVM_FINDER(function_get_global, "FunctionGetGlobal")
TVM_FINDER(function_call, "FunctionCall")
TVM_FINDER(object_release, "ObjectDecRef")

int qn_tvm_raise(const char *kind) {
  qn_tvm_error_set_raised *const set_raised = qn_tvm_find_error_set_raised();
  if (set_raised) set_raised(kind, quern_last_error());
  return -1;
}

int qn_tvm_fail(const char *kind, const quern_op_info *info, const char *format, ...) {
  char text[1024];
  const int n = snprintf(text, sizeof text, "%.128s: ", info->name);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, sizeof text - (size_t)n, format, args);
  va_end(args);
  quern_set_last_error(text);
  return qn_tvm_raise(kind);
}
