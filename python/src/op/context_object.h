/* SPDX-License-Identifier: Apache-2.0
 *
 * context_object.h: quern.Context as a C object, and its ops. Knows no other methods than compile; the Python type is in context.c. */
#ifndef QUERN_PYTHON_CONTEXT_OBJECT_H
#define QUERN_PYTHON_CONTEXT_OBJECT_H

#include <quern/quern.h>

#include "base/limited.h"

typedef struct context_object {
  PyObject_HEAD
  PyObject *weak_references;
  quern_ctx *ctx;        /* owned; NULL: default context, not needed yet */
  int32_t is_default;
  PyObject *options;     /* tuple: jit, threads, cache_dir, cc as they were given; None: of the default context */
  PyObject *ops;         /* dict: name -> the quern.Op last found under it */
  PyObject *expressions; /* dict: text -> quern.Op, for evaluate; the oldest first */
  PyObject *specs;       /* dict: text of a spec, bytes -> (path, its ops) */
  PyObject *spec_of;     /* dict: name of an op -> path of its spec */
  void *loading;         /* a lock: one spec is loaded at a time */
} context_object;

/* The context for ops of one's own, made when first needed. NULL: an exception. */
quern_ctx *context_own(context_object *self);

/* The quern.Op of that name: a new reference. */
PyObject *context_find(context_object *self, PyObject *name);

/* A new set of the names of all ops. */
PyObject *context_names(const context_object *self);

/* A new sorted tuple. Releases the set, which may be NULL. */
PyObject *context_sorted(PyObject *names);

/* The method compile. */
PyObject *context_compile(PyObject *self, PyObject *expression);

#endif
