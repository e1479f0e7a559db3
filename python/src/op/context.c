/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c: the Python type; see context.h. */
#include "op/context.h"

#include <string.h>

#include "base/errors.h"
#include "base/lines.h"
#include "call/op_object.h"
#include "op/context_object.h"
#include "op/evaluate.h"
#include "op/specs.h"

static PyTypeObject *context_type; /* for the life of the process */

/* Takes over the context and the reference to the options, which may be NULL after an exception. */
static context_object *make_context(quern_ctx *ctx, int is_default, PyObject *options) {
  context_object *self = options ? PyObject_New(context_object, context_type) : NULL;
  if (!self) {
    Py_XDECREF(options);
    quern_ctx_release(ctx);
    return NULL;
  }
  self->weak_references = NULL;
  self->ctx = ctx;
  self->is_default = is_default;
  self->options = options;
  self->ops = PyDict_New();
  self->expressions = PyDict_New();
  self->specs = PyDict_New();
  self->spec_of = PyDict_New();
  self->loading = PyThread_allocate_lock();
  if (!self->loading && !PyErr_Occurred()) PyErr_NoMemory();
  if (!self->ops || !self->expressions || !self->specs || !self->spec_of || !self->loading) Py_CLEAR(self);
  return self;
}

static void context_delete(PyObject *object) {
  context_object *self = (context_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  quern_ctx_release(self->ctx);
  Py_XDECREF(self->options);
  Py_XDECREF(self->ops);
  Py_XDECREF(self->expressions);
  Py_XDECREF(self->specs);
  Py_XDECREF(self->spec_of);
  if (self->loading) PyThread_free_lock(self->loading);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* ---- Options ---- */

static int take_jit(PyObject *value, int32_t *jit) {
  static const char *const names[] = {"off", "sync", "async"};
  if (value == Py_None) return 0;
  for (int32_t k = 0; PyUnicode_Check(value) && k < 3; k++)
    if (PyUnicode_CompareWithASCIIString(value, names[k]) == 0) {
      *jit = QUERN_JIT_OFF + k;
      return 0;
    }
  PyErr_Format(PyExc_ValueError, "Context: jit: %R, expected 'off', 'sync', 'async' or None", value);
  return -1;
}

static int take_threads(PyObject *value, int32_t *threads) {
  if (value == Py_None) return 0;
  long n = PyLong_AsLong(value);
  if (n == -1 && PyErr_Occurred()) return -1;
  if (n >= 1 && n <= INT32_MAX) {
    *threads = (int32_t)n;
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "Context: threads: %R, expected 1 or more", value);
  return -1;
}

/* *bytes: owned, NULL for None. */
static int take_path(PyObject *value, PyObject **bytes) {
  *bytes = NULL;
  return value == Py_None || PyUnicode_FSConverter(value, bytes) ? 0 : -1;
}

static const char *text_of(PyObject *bytes) { return bytes ? PyBytes_AsString(bytes) : NULL; }

/* A path as a str: a new reference. */
static PyObject *path_object(PyObject *bytes) {
  return bytes ? PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes)) : new_ref(Py_None);
}

/* One of quern_options' limits by its name without "_limit". Returns 0, or -1 with an error set. */
static int take_limit(PyObject *name, PyObject *value, quern_options *options) {
  static const char *const names[] = {"text", "node", "compile_ms", "compile_cost", "spec_step", "kernel", "cache_bytes"};
  const long long n = PyLong_AsLongLong(value);
  int k = 0;
  if (n == -1 && PyErr_Occurred()) return -1;
  while (k < 7 && !(PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[k]) == 0)) k++;
  if (k == 7) {
    PyErr_Format(PyExc_ValueError, "Context: limits: %R, expected text, node, compile_ms, compile_cost, spec_step, kernel or cache_bytes", name);
    return -1;
  }
  if (n < 1 || (k < 3 && n > INT32_MAX)) {
    PyErr_Format(PyExc_ValueError, "Context: limits: %U: %R, expected 1 or more", name, value);
    return -1;
  }
  if (k == 0) options->text_limit = (size_t)n;
  else if (k < 3) *(k == 1 ? &options->node_limit : &options->compile_ms_limit) = (int32_t)n;
  else if (k < 5) *(k == 3 ? &options->compile_cost_limit : &options->spec_step_limit) = n;
  else *(k == 5 ? &options->kernel_limit : &options->cache_bytes_limit) = n;
  return 0;
}

/* limits: None, a dict or pairs. *kept: a new reference to sorted pairs, or to None; NULL with an error set. */
static int take_limits(PyObject *limits, quern_options *options, PyObject **kept) {
  PyObject *dict = PyDict_New(), *name, *value, *pairs = NULL;
  Py_ssize_t at = 0;
  *kept = NULL;
  if (limits == Py_None) *kept = new_ref(Py_None);
  int failed = !dict;
  if (!failed && !*kept) failed = (PyDict_Check(limits) ? PyDict_Update(dict, limits) : PyDict_MergeFromSeq2(dict, limits, 1)) != 0;
  while (!failed && PyDict_Next(dict, &at, &name, &value)) failed = take_limit(name, value, options);
  if (!failed && !*kept) {
    pairs = PyDict_Items(dict);
    if (pairs && PyList_Sort(pairs) == 0) *kept = PyList_AsTuple(pairs);
    Py_XDECREF(pairs);
  }
  Py_XDECREF(dict);
  if (!failed && *kept) return 0;
  Py_XDECREF(*kept);
  *kept = NULL;
  return -1;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"jit", "threads", "cache_dir", "cc", "limits", NULL};
  PyObject *jit = Py_None, *threads = Py_None, *cache_dir = Py_None, *cc = Py_None, *limits = Py_None;
  PyObject *kept = NULL, *cache_dir_bytes = NULL, *cc_bytes = NULL, *self = NULL;
  quern_options options = {.size = sizeof options};
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOOOO:Context", names, &jit, &threads, &cache_dir, &cc, &limits)) return NULL;
  if (take_jit(jit, &options.jit) == 0 && take_threads(threads, &options.threads) == 0 &&
      take_path(cache_dir, &cache_dir_bytes) == 0 && take_path(cc, &cc_bytes) == 0 && take_limits(limits, &options, &kept) == 0) {
    quern_ctx *ctx;
    options.cache_dir = text_of(cache_dir_bytes);
    options.cc = text_of(cc_bytes);
    quern_status status = quern_ctx_create(&options, &ctx);
    PyObject *given = Py_BuildValue("OONNO", jit, threads, path_object(cache_dir_bytes), path_object(cc_bytes), kept);
    if (status) Py_XDECREF(given);
    self = status ? raise_status(status) : (PyObject *)make_context(ctx, 0, given);
  }
  Py_XDECREF(cache_dir_bytes);
  Py_XDECREF(cc_bytes);
  Py_XDECREF(kept);
  return self;
}

static PyObject *context_cancel(PyObject *self, PyObject *unused) {
  (void)unused;
  quern_ctx_cancel(((context_object *)self)->ctx);
  return new_ref(Py_None);
}

/* ---- Methods ---- */

static PyObject *context_op(PyObject *self, PyObject *name) { return context_find((context_object *)self, name); }

static PyObject *context_call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  if (n < 1) {
    PyErr_SetString(PyExc_TypeError, "call: the name of an op is wanted");
    return NULL;
  }
  op_object *op = (op_object *)context_find((context_object *)self, args[0]);
  PyObject *result = op ? op->vectorcall((PyObject *)op, args + 1, (size_t)(n - 1), keywords) : NULL;
  Py_XDECREF(op);
  return result;
}

static PyObject *context_ops(PyObject *self, PyObject *unused) {
  (void)unused;
  return context_sorted(context_names((context_object *)self));
}

static PyObject *context_describe(PyObject *self, PyObject *unused) {
  char text[8192];
  (void)unused;
  quern_status status = quern_ctx_describe(((context_object *)self)->ctx, text, sizeof text);
  return status && status != QUERN_E_LIMIT ? raise_status(status) : lines_dict(text);
}

static PyMethodDef context_methods[] = {
    {"call", (PyCFunction)(void (*)(void))context_call, METH_FASTCALL | METH_KEYWORDS,
     "call($self, name, /, *operands, out=None, dtype=None, stream=None, **params)\n--\n\nCalls the op of that name."},
    {"cancel", context_cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\nDrops the compiles that have not begun: these ops are interpreted until their next call asks anew."},
    {"compile", context_compile, METH_O,
     "compile($self, expression, /)\n--\n\n"
     "An Op for an expression such as \"y = gelu(x*w + b); z = y > 0\". Its inputs are the names without an assignment, in\n"
     "order of appearance; its outputs are the assigned names. `param a;` declares a number as an argument of each call."},
    {"describe", context_describe, METH_NOARGS,
     "describe($self, /)\n--\n\nThe context's resources: a dict of str, among them isa, threads, jit, cuda, cache."},
    {"evaluate", (PyCFunction)(void (*)(void))context_evaluate, METH_FASTCALL | METH_KEYWORDS,
     "evaluate($self, expression, /, local_dict=None, global_dict=None, out=None, *, dtype=None, stream=None)\n--\n\n"
     "The result of an expression such as \"a*b + c\" over the caller's variables of these names: locals, then globals, or the\n"
     "dicts (any mappings) given instead; local_dict={...}, global_dict={} is all that the text can see. `param` names are\n"
     "looked up, too. The text is compiled once, as by compile, and kept. It is of Quern's expression language, which has\n"
     "no attributes, indices, strings or calls of Python: whatever it says, it computes with tensors and does nothing else.\n"
     "(NumExpr runs its text by Python's eval.)"},
    {"load_spec", context_load_spec, METH_O,
     "load_spec($self, path, /)\n--\n\nAdds the ops of a spec file, all or none, and returns them as a tuple, sorted by\n"
     "name; their derivatives, NAME_backward, by op(). A text that was loaded before gives the same ops again."},
    {"op", context_op, METH_O, "op($self, name, /)\n--\n\nThe Op of that name. KeyError: there is none."},
    {"ops", context_ops, METH_NOARGS, "ops($self, /)\n--\n\nThe names of all ops, sorted: of a derivative of a spec's op once it was asked for."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef context_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(context_object, weak_references), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc,
     "Context(jit=None, threads=None, cache_dir=None, cc=None, limits=None)\n--\n\n"
     "A set of ops, with threads and a cache of compiled kernels of its own. jit: when expressions are compiled, 'off', 'sync'\n"
     "(before the first run) or 'async' (meanwhile; the default). threads: the most that one call uses. cache_dir: the folder\n"
     "of the disk cache, '' for none. cc: a C compiler to be used instead of Clang in process. limits: of what\n"
     "texts of others may cost, a dict: text, node, compile_ms, compile_cost, spec_step, kernel, cache_bytes (docs/howto/limits.md).\n\n"
     "quern.compile, quern.evaluate, quern.load_spec, quern.call, quern.op, quern.ops and quern.describe are those of the default\n"
     "context."},
    {Py_tp_new, (void *)context_new},
    {Py_tp_dealloc, (void *)context_delete},
    {Py_tp_methods, context_methods},
    {Py_tp_members, context_members},
    {0, NULL},
};

static PyType_Spec context_spec = {"quern.Context", sizeof(context_object), 0, Py_TPFLAGS_DEFAULT, context_slots};

/* ---- The default context ---- */

static int add_functions(PyObject *module, PyObject *context) {
  for (const PyMethodDef *method = context_methods; method->ml_name; method++)
    if (module_add(module, method->ml_name, PyObject_GetAttrString(context, method->ml_name))) return -1;
  return 0;
}

/* Adds all ops without a dot in their names, unless the module has such an attribute. */
static int add_ops(PyObject *module, PyObject *context) {
  PyObject *names = context_ops(context, NULL);
  Py_ssize_t n = names ? PyTuple_Size(names) : -1;
  int failed = !names;
  for (Py_ssize_t k = 0; k < n && !failed; k++) {
    PyObject *name = PyTuple_GetItem(names, k);
    if (!PyUnicode_IsIdentifier(name) || PyObject_HasAttr(module, name)) continue; /* an attribute of the module */
    PyObject *op = context_op(context, name);
    failed = !op || PyObject_SetAttr(module, name, op);
    Py_XDECREF(op);
  }
  Py_XDECREF(names);
  return failed ? -1 : 0;
}

int context_add(PyObject *module) {
  if (!context_type && !(context_type = (PyTypeObject *)PyType_FromSpec(&context_spec))) return -1;
  if (module_add(module, "Context", new_ref((PyObject *)context_type))) return -1;
  PyObject *context = (PyObject *)make_context(NULL, 1, new_ref(Py_None));
  int failed = !context || add_functions(module, context) || add_ops(module, context);
  Py_XDECREF(context);
  return failed ? -1 : 0;
}
