/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_ffi.h: XLA's foreign function interface as a handler sees it, in C: declarations of our own for its public binary interface,
 * version 0.1 and later ones of major version 0. t875 compares them with the header that jaxlib has. Every struct begins with its size
 * in the caller's version; fields are appended. */
#ifndef QUERN_PYTHON_XLA_FFI_H
#define QUERN_PYTHON_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

#include "types/xla_dtypes.h"

#define XLA_MAJOR 0
#define XLA_MINOR 1 /* the oldest one that has what is used here */

enum { XLA_METADATA = 1 };                                   /* types of extensions */
enum { XLA_ARG_BUFFER = 1, XLA_ATTR_ARRAY = 1, XLA_ATTR_STRING = 4 };
enum { XLA_EXECUTE = 3 };                                    /* stages */
enum { XLA_INVALID_ARGUMENT = 3, XLA_NOT_FOUND = 5, XLA_RESOURCE_EXHAUSTED = 8, XLA_UNIMPLEMENTED = 12, XLA_INTERNAL = 13 };

typedef struct xla_error xla_error;       /* made by error_create; the caller of a function that returns one owns it */
typedef struct xla_execution xla_execution;

typedef struct xla_extension {
  size_t size;
  int32_t type;
  struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
  size_t size;
  xla_extension *extension;
  int32_t major, minor;
} xla_version;

/* What a handler tells of itself: filled in when it is called with this extension. Newer versions have fields behind these. */
typedef struct xla_metadata {
  size_t size;
  xla_version version;
  uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
  xla_extension base;
  xla_metadata *metadata;
} xla_metadata_extension;

/* A dense row-major tensor. */
typedef struct xla_buffer {
  size_t size;
  xla_extension *extension;
  int32_t dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
} xla_buffer;

typedef struct xla_span {
  const char *text; /* not terminated */
  size_t n;
} xla_span;

typedef struct xla_array {
  int32_t dtype;
  size_t n;
  void *items;
} xla_array;

typedef struct xla_list { /* operands; results */
  size_t size;
  xla_extension *extension;
  int64_t n;
  int32_t *types;
  void **items;
} xla_list;

typedef struct xla_attributes {
  size_t size;
  xla_extension *extension;
  int64_t n;
  int32_t *types;
  xla_span **names;
  void **items;
} xla_attributes;

typedef struct xla_error_args {
  size_t size;
  xla_extension *extension;
  const char *message;
  int32_t code;
} xla_error_args;

typedef struct xla_stream_args {
  size_t size;
  xla_extension *extension;
  xla_execution *execution;
  void *stream; /* out */
} xla_stream_args;

typedef struct xla_ordinal_args {
  size_t size;
  xla_extension *extension;
  xla_execution *execution;
  int32_t ordinal; /* out */
} xla_ordinal_args;

typedef struct xla_allocate_args {
  size_t size;
  xla_extension *extension;
  xla_execution *execution;
  size_t bytes, alignment;
  void *data; /* out */
} xla_allocate_args;

typedef struct xla_free_args {
  size_t size;
  xla_extension *extension;
  xla_execution *execution;
  size_t bytes;
  void *data;
} xla_free_args;

typedef void xla_unused(void);

/* Functions of XLA. Those behind device_free are not in every version: see size. */
typedef struct xla_api {
  size_t size;
  xla_extension *extension;
  xla_version version;
  const void *internal;
  xla_error *(*error_create)(xla_error_args *args);
  xla_unused *error_get_message;
  void (*error_destroy)(void *args);
  xla_unused *handler_register;
  xla_error *(*stream_get)(xla_stream_args *args);
  xla_unused *type_register, *execution_get, *state_set, *state_get;
  xla_error *(*device_allocate)(xla_allocate_args *args);
  xla_error *(*device_free)(xla_free_args *args);
  xla_unused *schedule, *n_threads, *future_create, *future_set_available, *future_set_error, *run_id_get;
  xla_error *(*ordinal_get)(xla_ordinal_args *args);
} xla_api;

typedef struct xla_error_destroy_args {
  size_t size;
  xla_extension *extension;
  xla_error *error;
} xla_error_destroy_args;

typedef struct xla_frame {
  size_t size;
  xla_extension *extension;
  const xla_api *api;
  xla_execution *execution;
  int32_t stage;
  xla_list in, out;
  xla_attributes attributes;
} xla_frame;

typedef xla_error *xla_handler(xla_frame *frame);

#endif
