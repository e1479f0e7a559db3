/* SPDX-License-Identifier: Apache-2.0
 *
 * op.c: see op.h. What a call does is in arguments.c and call.c. */
#include "op/op.h"

#include <string.h>

#include "call/arguments.h"
#include "call/call.h"
#include "call/op_object.h"
#include "operand/foreign.h"
#include "types/scalar.h"

static PyTypeObject *op_type; /* for the life of the process */

int op_check(PyObject *object) { return Py_TYPE(object) == op_type; }

/* After an exception of the binding: the reason may be a traced value in the place of a parameter. */
static __attribute__((noinline)) PyObject *op_call_traced(PyObject *self, PyObject *const *args, Py_ssize_t n,
                                                          PyObject *keywords) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (foreign_is_traced(args, n + (keywords ? PyTuple_Size(keywords) : 0))) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return foreign_call(self, NULL, args, n, keywords);
  }
  PyErr_Restore(type, value, traceback);
  return NULL;
}

static PyObject *op_call(PyObject *self, PyObject *const *args, size_t n, PyObject *keywords) {
  op_object *op = (op_object *)self;
  arguments given;
  if (arguments_bind(op, args, PyVectorcall_NARGS(n), keywords, &given))
    return op_call_traced(self, args, PyVectorcall_NARGS(n), keywords);
  PyObject *result = call_run(op, &given);
  if (!result && given.is_foreign) return foreign_call(self, NULL, args, PyVectorcall_NARGS(n), keywords);
  return result;
}

static PyObject *op_explain(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  op_object *op = (op_object *)self;
  arguments given;
  if (arguments_bind(op, args, n, keywords, &given)) return NULL;
  PyObject *result = call_explain(op, &given);
  return !result && given.is_foreign ? foreign_call(self, "explain", args, n, keywords) : result;
}

static PyObject *op_infer(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  arguments given;
  if (arguments_bind((op_object *)self, args, n, keywords, &given)) return NULL;
  PyObject *result = call_infer((op_object *)self, &given);
  return result || !given.is_foreign ? result : PyErr_Format(PyExc_TypeError, "_infer: expected tensors and numbers, not numbers alone");
}

/* ---- Making ---- */

/* The name of parameter k in Python. */
static const char *param_name(const op_object *op, int32_t k) { return k == op->axes ? "axis" : op->info->params[k].name; }

static PyObject *make_names(const op_object *op) {
  const quern_op_info *info = op->info;
  PyObject *names = PyTuple_New(info->n_in + info->n_params);
  for (int32_t k = 0; names && k < info->n_in + info->n_params; k++) {
    PyObject *name = PyUnicode_InternFromString(k < info->n_in ? info->args[k].name : param_name(op, k - info->n_in));
    if (!name || PyTuple_SetItem(names, k, name)) Py_CLEAR(names);
  }
  return names;
}

/* Finds the parameters that say more than a number. With one for keepdims the op's results are reduced. */
static void find_roles(op_object *op) {
  op->axes = op->keepdims = op->initial = -1;
  for (int32_t k = 0; k < op->info->n_params; k++) {
    const int32_t role = quern_param_role(op->info, k);
    if (role == QUERN_ROLE_AXES || role == QUERN_ROLE_AXIS) op->axes = k;
    if (role == QUERN_ROLE_KEEPDIMS) op->keepdims = k;
    if (role == QUERN_ROLE_INITIAL) op->initial = k;
    op->scans |= role == QUERN_ROLE_AXIS;
  }
}

static number_rules rules_of(const quern_op_info *info) {
  number_rules rules = {.counts = info->size > offsetof(quern_op_info, counts) ? info->counts : 0};
  for (int32_t k = 0; k < info->n_in; k++) rules.conditions |= (uint32_t)(strcmp(info->args[k].dtypes, "bool") == 0) << k;
  rules.gives_f64 = info->n_out == 1 && strcmp(info->args[info->n_in].dtypes, "f64") == 0;
  return rules;
}

PyObject *op_new(quern_op *op, int may_compile, int reduces_all) {
  op_object *self = PyObject_New(op_object, op_type);
  if (!self) {
    quern_op_release(op);
    return NULL;
  }
  memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
  self->vectorcall = op_call;
  self->op = op;
  self->info = quern_op_describe(op);
  self->may_compile = (uint8_t)may_compile;
  self->numbers = rules_of(self->info);
  find_roles(self);
  self->reduces_all = self->keepdims >= 0 || reduces_all;
  self->names = make_names(self);
  if (!self->names) Py_CLEAR(self);
  return (PyObject *)self;
}

PyObject *op_with_origin(PyObject *op, PyObject *origin) {
  if (op && origin) {
    ((op_object *)op)->origin = origin;
    return op;
  }
  Py_XDECREF(origin);
  Py_XDECREF(op);
  return NULL;
}

static void op_delete(PyObject *object) {
  op_object *self = (op_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  memo_clear(&self->memo);
  quern_op_release(self->op);
  Py_XDECREF(self->names);
  Py_XDECREF(self->signature);
  Py_XDECREF(self->origin);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *op_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  (void)type;
  (void)args;
  (void)keywords;
  PyErr_SetString(PyExc_TypeError, "quern.Op: made by quern.op, quern.compile and quern.load_spec; not by its name");
  return NULL;
}

/* ---- Attributes ---- */

/* Calls a function of one of the package's modules for the op. */
static PyObject *ask_module(PyObject *self, const char *name, const char *function) {
  PyObject *module = PyImport_ImportModule(name);
  PyObject *answer = module ? PyObject_CallMethod(module, function, "O", self) : NULL;
  Py_XDECREF(module);
  return answer;
}

static PyObject *ask_python(PyObject *self, const char *function) { return ask_module(self, "quern._signature", function); }

static PyObject *get_name(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(((op_object *)self)->info->name);
}

static PyObject *get_signature(PyObject *object, void *unused) {
  op_object *self = (op_object *)object;
  (void)unused;
  if (!self->signature) {
    PyObject *signature = ask_python(object, "signature"), *other = self->signature; /* maybe by another thread meanwhile */
    self->signature = signature;
    Py_XDECREF(other);
  }
  return self->signature ? new_ref(self->signature) : NULL;
}

/* A text of a spec, which may have any bytes. */
static PyObject *spec_text(const char *text) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"); }

static PyObject *get_doc(PyObject *self, void *unused) {
  (void)unused;
  return spec_text(((op_object *)self)->info->doc);
}

static PyObject *get_formula(PyObject *self, void *unused) {
  (void)unused;
  return spec_text(((op_object *)self)->info->formula);
}

static PyObject *names_of(const quern_arg_info *args, int32_t n) {
  PyObject *names = PyTuple_New(n);
  for (int32_t k = 0; names && k < n; k++) {
    PyObject *name = PyUnicode_FromString(args[k].name);
    if (!name || PyTuple_SetItem(names, k, name)) Py_CLEAR(names);
  }
  return names;
}

static PyObject *get_inputs(PyObject *self, void *unused) {
  const quern_op_info *info = ((op_object *)self)->info;
  (void)unused;
  return names_of(info->args, info->n_in);
}

static PyObject *get_outputs(PyObject *self, void *unused) {
  const quern_op_info *info = ((op_object *)self)->info;
  (void)unused;
  return names_of(info->args + info->n_in, info->n_out);
}

/* The default of parameter k; None: it has none, or all axes. */
static PyObject *default_of(const op_object *op, int32_t k) {
  const quern_scalar *value = &op->info->params[k].value;
  if (k == op->axes) return op->reduces_all ? new_ref(Py_None) : PyLong_FromLong(-1);
  return k == op->keepdims ? PyBool_FromLong(value->v.i != 0) : scalar_object(value);
}

static PyObject *get_params(PyObject *object, void *unused) {
  const op_object *self = (op_object *)object;
  PyObject *params = PyDict_New();
  (void)unused;
  for (int32_t k = 0; params && k < self->info->n_params; k++) {
    PyObject *value = default_of(self, k);
    if (!value || PyDict_SetItemString(params, param_name(self, k), value)) Py_CLEAR(params);
    Py_XDECREF(value);
  }
  return params;
}

/* For quern._signature: whether `axis` among the params is that of a reducing op. */
static PyObject *get_has_axis(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((op_object *)self)->axes >= 0);
}

/* For the package's modules: those parameters that are no mere numbers, each with its role as a word. */
static PyObject *get_roles(PyObject *object, void *unused) {
  static const char *const words[] = {
      [QUERN_ROLE_AXES] = "axes", [QUERN_ROLE_AXIS] = "axis", [QUERN_ROLE_KEEPDIMS] = "keepdims",
      [QUERN_ROLE_INITIAL] = "initial", [QUERN_ROLE_FLAG] = "flag"};
  const op_object *self = (op_object *)object;
  PyObject *roles = PyDict_New();
  (void)unused;
  for (int32_t k = 0; roles && k < self->info->n_params; k++) {
    const uint32_t role = (uint32_t)quern_param_role(self->info, k);
    if (role == QUERN_ROLE_NUMBER || role >= sizeof words / sizeof words[0]) continue;
    PyObject *word = PyUnicode_InternFromString(words[role]);
    if (!word || PyDict_SetItemString(roles, param_name(self, (int32_t)k), word)) Py_CLEAR(roles);
    Py_XDECREF(word);
  }
  return roles;
}

/* For the package's modules: the dtypes of each input, then of each output, as the library writes them. */
static PyObject *get_dtypes(PyObject *self, void *unused) {
  const quern_op_info *info = ((op_object *)self)->info;
  PyObject *dtypes = PyTuple_New(info->n_in + info->n_out);
  (void)unused;
  for (int32_t k = 0; dtypes && k < info->n_in + info->n_out; k++) {
    PyObject *text = PyUnicode_FromString(info->args[k].dtypes);
    if (!text || PyTuple_SetItem(dtypes, k, text)) Py_CLEAR(dtypes);
  }
  return dtypes;
}

/* For the package's modules: where it comes from, as context.c says. None: unknown. */
static PyObject *get_origin(PyObject *self, void *unused) {
  PyObject *origin = ((op_object *)self)->origin;
  (void)unused;
  return new_ref(origin ? origin : Py_None);
}

static PyObject *get_backward(PyObject *self, void *unused) {
  const char *backward = ((op_object *)self)->info->backward;
  (void)unused;
  return backward ? PyUnicode_FromString(backward) : new_ref(Py_None);
}

static PyObject *get_op_class(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(((op_object *)self)->info->op_class);
}

static PyObject *op_last(PyObject *self, PyObject *unused) {
  (void)unused;
  return call_explain_last((op_object *)self);
}

static PyObject *op_repr(PyObject *self) { return ask_module(self, "quern._show", "op_text"); }

static PyObject *op_html(PyObject *self, PyObject *unused) {
  (void)unused;
  return ask_module(self, "quern._show", "op_html");
}

static PyObject *op_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  return ask_module(self, "quern._pickles", "reduce");
}

/* Ops do not change. */
static PyObject *op_copy(PyObject *self, PyObject *unused) {
  (void)unused;
  return new_ref(self);
}

static PyGetSetDef op_attributes[] = {
    {"__name__", get_name, NULL, NULL, NULL},
    {"__qualname__", get_name, NULL, NULL, NULL},
    {"__signature__", get_signature, NULL, NULL, NULL},
    {"doc", get_doc, NULL, "What it computes, in a sentence.", NULL},
    {"formula", get_formula, NULL, "Its body in the expression language; '' where there is none.", NULL},
    {"inputs", get_inputs, NULL, "The names of its inputs.", NULL},
    {"outputs", get_outputs, NULL, "The names of its outputs.", NULL},
    {"params", get_params, NULL, "Its parameters and their defaults; None: it must be given, or, of `axis`, all axes, of `initial`, none.", NULL},
    {"backward", get_backward, NULL, "The name of the op that computes its derivative; None.", NULL},
    {"_has_axis", get_has_axis, NULL, NULL, NULL},
    {"_roles", get_roles, NULL, NULL, NULL},
    {"_dtypes", get_dtypes, NULL, NULL, NULL},
    {"_origin", get_origin, NULL, NULL, NULL},
    {"_class", get_op_class, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef op_methods[] = {
    {"explain", (PyCFunction)(void (*)(void))op_explain, METH_FASTCALL | METH_KEYWORDS,
     "explain($self, /, *operands, out=None, dtype=None, stream=None, **params)\n--\n\n"
     "How a call with these arguments would run: a quern.Explanation. Computes nothing."},
    {"_infer", (PyCFunction)(void (*)(void))op_infer, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_last", op_last, METH_NOARGS, NULL},
    {"_repr_html_", op_html, METH_NOARGS, NULL},
    {"__reduce__", op_reduce, METH_NOARGS, NULL},
    {"__copy__", op_copy, METH_NOARGS, NULL},
    {"__deepcopy__", op_copy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef op_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(op_object, vectorcall), Py_READONLY, NULL},
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(op_object, weak_references), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot op_slots[] = {
    {Py_tp_new, (void *)op_refuse_new},
    {Py_tp_dealloc, (void *)op_delete},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_repr, (void *)op_repr},
    {Py_tp_getset, op_attributes},
    {Py_tp_methods, op_methods},
    {Py_tp_members, op_members},
    {0, NULL},
};

static PyType_Spec op_spec = {"quern.Op", sizeof(op_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, op_slots};

/* ---- Docstrings: an op has its own, and the type has one ---- */

static const char type_doc[] =
    "A tensor op, called as a function: op(*inputs, *params, out=None, dtype=None, stream=None). Inputs are tensors of any\n"
    "library, or numbers, which take the dtype of the tensors; the result is of the first tensor's kind.\n\n"
    "out: the tensor that the result is written into; it is returned. With several outputs a tuple, in which None means a new\n"
    "object. dtype: the dtype of new results. stream: a CUDA stream, an int as in DLPack; None: the current stream of the first\n"
    "tensor's library. Ops are made by quern.op, quern.compile and quern.load_spec.";

static PyObject *doc_get(PyObject *descriptor, PyObject *op, PyObject *type) {
  (void)descriptor;
  (void)type;
  return op ? ask_python(op, "doc") : PyUnicode_FromString(type_doc);
}

/* The type's __doc__, which also serves instances. A getset or a plain __doc__ would hide one of the two docstrings. */
static PyObject *make_doc(void) {
  static PyType_Slot slots[] = {{Py_tp_descr_get, (void *)doc_get}, {0, NULL}};
  static PyType_Spec spec = {"quern._OpDoc", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject *type = PyType_FromSpec(&spec), *descriptor = type ? (PyObject *)PyObject_New(PyObject, (PyTypeObject *)type) : NULL;
  Py_XDECREF(type);
  return descriptor;
}

static int make_type(void) {
  PyObject *type = PyType_FromSpec(&op_spec), *doc = type ? make_doc() : NULL;
  if (doc && PyObject_SetAttrString(type, "__doc__", doc) == 0) op_type = (PyTypeObject *)type;
  Py_XDECREF(doc);
  if (!op_type) Py_XDECREF(type);
  return op_type ? 0 : -1;
}

int op_add(PyObject *module) {
  if (arguments_start() || (!op_type && make_type())) return -1;
  return module_add(module, "Op", new_ref((PyObject *)op_type));
}
