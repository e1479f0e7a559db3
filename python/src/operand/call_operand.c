/* SPDX-License-Identifier: Apache-2.0
 *
 * call_operand.c: see call_operand.h. */
#include "operand/call_operand.h"

#include "array/array_object.h"
#include "array/exchange_api.h"
#include "base/errors.h"
#include "base/remedy.h"
#include "exchange/buffer.h"
#include "exchange/protocol.h"
#include "operand/foreign.h"
#include "operand/numpy_array.h"

/* ---- Kinds of types ---- */

/* A cached type: how its tensors are taken, and the questions to ask of each object. */
typedef struct operand_type {
  PyTypeObject *type; /* owned, so that no other type gets its address */
  const DLPackExchangeAPI *api;
  operand_kind kind;
  numpy_kind numpy;
  uint8_t is_immutable;    /* its library never changes such an array */
  uint8_t has_lazy_bits;   /* it has views that negate or conjugate on reading: is_neg, is_conj */
  PyCFunction is_neg;      /* the C function of the method without arguments; NULL: call it as a Python method */
  PyObject *requires_grad; /* owned, a descriptor: whether a tensor is part of an autograd graph; DLPack has no flag for it */
  descrgetfunc get;        /* its getter; NULL: get the attribute as any other */
} operand_type;

/* A direct-mapped cache of types: programs compute with few types. */
#define N_PLACES 64
static operand_type places[N_PLACES];

static PyObject *requires_grad, *is_neg, *is_conj; /* interned names, made with the first type that has an exchange API */

static inline operand_type *place_of(const PyTypeObject *type) {
  uintptr_t address = (uintptr_t)type;
  return &places[(address >> 4 ^ address >> 10) % N_PLACES];
}

static int make_names(void) {
  if (!requires_grad) requires_grad = PyUnicode_InternFromString("requires_grad");
  if (!is_neg) is_neg = PyUnicode_InternFromString("is_neg");
  if (!is_conj) is_conj = PyUnicode_InternFromString("is_conj");
  return requires_grad && is_neg && is_conj ? 0 : -1;
}

/* The C function of a method, for objects of exactly this type; NULL: the method is not a C function. */
static PyCFunction function_of(PyObject *object, PyObject *name) {
  PyObject *method = PyObject_GetAttr(object, name);
  int is_plain = method && PyCFunction_Check(method) && PyCFunction_GetSelf(method) == object &&
                 PyCFunction_GetFlags(method) == METH_NOARGS;
  PyCFunction function = is_plain ? PyCFunction_GetFunction(method) : NULL;
  Py_XDECREF(method);
  return function;
}

/* Sets up a type with the exchange API. 0: it has none, or an exception. */
static int note_exchange(PyObject *object, operand_type *found) {
  PyObject *type = (PyObject *)found->type;
  if (!(found->api = exchange_api_of(found->type)) || make_names()) return 0;
  int has_neg = has_attribute(type, "is_neg"), has_conj = has_neg < 0 ? -1 : has_attribute(type, "is_conj");
  if (has_conj < 0) return 0;
  found->has_lazy_bits = (uint8_t)(has_neg && has_conj);
  if (found->has_lazy_bits) found->is_neg = function_of(object, is_neg);
  if (!clear_refusal()) return 0;
  found->requires_grad = PyObject_GetAttr(type, requires_grad);
  if (!clear_refusal()) return 0;
  if (found->requires_grad) found->get = (descrgetfunc)PyType_GetSlot(Py_TYPE(found->requires_grad), Py_tp_descr_get);
  PyErr_Clear(); /* in Python 3.9 static types do not have this slot */
  return 1;
}

static int is_number(PyTypeObject *type) { return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type; }

static int is_subclass_of_number(PyTypeObject *type) {
  return PyType_IsSubtype(type, &PyLong_Type) || PyType_IsSubtype(type, &PyFloat_Type);
}

/* An object that is both tensor and number, such as numpy.float64, is a tensor. OPERAND_NONE: maybe with an exception. */
static operand_kind kind_of(PyObject *object, operand_type *found) {
  PyTypeObject *type = found->type;
  if (is_number(type)) return OPERAND_NUMBER;
  if (array_check(object)) return OPERAND_ARRAY;
  found->numpy = numpy_kind_of(type);
  if (found->numpy == NUMPY_ARRAY) return OPERAND_NUMPY;
  if (found->numpy == NUMPY_MASKED) return OPERAND_NONE;
  if (found->numpy == NUMPY_SCALAR && buffer_has(object)) return OPERAND_BUFFER;
  if (foreign_has_tensors(object)) return OPERAND_NONE;
  if (note_exchange(object, found)) return OPERAND_EXCHANGE;
  int has = PyErr_Occurred() ? -1 : dlpack_has(object);
  if (has) return has > 0 ? OPERAND_DLPACK : OPERAND_NONE;
  if (buffer_has(object)) return OPERAND_BUFFER;
  return is_subclass_of_number(type) ? OPERAND_NUMBER : OPERAND_NONE;
}

/* Types of kind NONE are not cached: they may get attributes later. */
static __attribute__((noinline)) operand_type learn(PyObject *object) {
  operand_type found = {.type = Py_TYPE(object)};
  found.kind = kind_of(object, &found);
  if (found.kind != OPERAND_NONE) {
    found.is_immutable = (uint8_t)foreign_is_immutable(object);
    operand_type *place = place_of(found.type);
    operand_type last = *place;
    Py_INCREF(found.type);
    *place = found;
    Py_XDECREF(last.requires_grad);
    Py_XDECREF(last.type);
  }
  return found;
}

/* ---- Taking ---- */

static int refuse(const operand *operand, const operand_type *type) {
  if (type->numpy == NUMPY_MASKED)
    return operand_fail(operand, PyExc_TypeError, "a masked array's mask would be lost; give x.filled(value), or x.data");
  PyObject *remedy = remedy_of("of_object", operand->object);
  if (!remedy) return -1;
  operand_fail(operand, PyExc_TypeError, "%R is no tensor: it has neither __dlpack__ nor the buffer protocol%U",
               (PyObject *)type->type, remedy);
  Py_DECREF(remedy);
  return -1;
}

/* An object that no protocol takes: 1: foreign; -1: an exception. */
static __attribute__((noinline)) int take_none(const operand *operand, const operand_type *type) {
  if (PyErr_Occurred()) return -1;
  const int known = type->numpy == NUMPY_MASKED ? 0 : foreign_knows(operand->object);
  return known ? known : refuse(operand, type);
}

static int use_managed(operand *operand, struct DLManagedTensorVersioned *managed) {
  if (!managed) return -1;
  operand->managed = managed;
  operand->tensor = &managed->dl_tensor;
  operand->flags = managed->flags;
  if (!operand_is_output(operand) || !(managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED)) return 0;
  return operand_fail(operand, PyExc_BufferError, "it hands over a copy, in which the result would be lost");
}

/* The exception of a producer, with the operand's name and a remedy where there is one. */
static int refuse_as_producer(const operand *operand) {
  PyObject *text = remedy_of_refusal(operand->object);
  if (text) operand_fail(operand, PyExc_BufferError, "%U", text);
  Py_XDECREF(text);
  return -1;
}

static int use_protocol(operand *operand, void *stream) {
  const dlpack_wish wish = {.copy = QUERN_COPY_IF_NEEDED, .stream = stream};
  struct DLManagedTensorVersioned *managed = dlpack_import(operand->object, &wish);
  return managed ? use_managed(operand, managed) : refuse_as_producer(operand);
}

/* 1, 0, or -1 with an exception. */
static int truth_of(PyObject *value) {
  if (value == Py_True || value == Py_False) {
    Py_DECREF(value);
    return value == Py_True;
  }
  int is_true = value ? PyObject_IsTrue(value) : -1;
  Py_XDECREF(value);
  return is_true;
}

/* A tensor that requires a gradient is imported by __dlpack__, where the producer can refuse it with its own message. */
static int ask_for_gradients(operand *operand, const operand_type *type, void *stream) {
  PyObject *object = operand->object, *descriptor = type->requires_grad, *value;
  if (!descriptor) return 0;
  Py_INCREF(descriptor); /* while foreign code runs */
  value = type->get ? type->get(descriptor, object, (PyObject *)type->type) : PyObject_GetAttr(object, requires_grad);
  Py_DECREF(descriptor);
  int wants = truth_of(value);
  if (wants <= 0) return wants;
  return use_protocol(operand, stream);
}

/* 1, 0, or -1 with an exception. */
static int says(PyObject *object, PyObject *name) {
  PyObject *method = PyObject_GetAttr(object, name);
  PyObject *value = method ? PyObject_CallObject(method, NULL) : NULL;
  Py_XDECREF(method);
  return truth_of(value);
}

static int refuse_lazy(const operand *operand) {
  return operand_fail(operand, PyExc_BufferError, "it is a view that negates or conjugates what is in its memory; give "
                      "x.resolve_conj().resolve_neg()");
}

/* Asks whether the view negates; dtype and strides cannot rule that out: as_strided keeps the bit. Whether it conjugates is asked
 * after it was read, if it is complex. */
static int ask_for_bits(operand *operand, const operand_type *type) {
  if (!type->has_lazy_bits) return 0;
  operand->doubt = OPERAND_LAZY;
  int negates = type->is_neg ? truth_of(type->is_neg(operand->object, NULL)) : says(operand->object, is_neg);
  return negates > 0 ? refuse_lazy(operand) : negates;
}

/* Kinds that foreign code may be asked about: the place in the cache may change meanwhile. */
static __attribute__((noinline)) int take_slowly(PyObject *object, const quern_op_info *info, int32_t index, void *stream,
                                                 operand *operand) {
  const operand_type *place = place_of(Py_TYPE(object));
  const operand_type type = place->type == Py_TYPE(object) ? *place : learn(object);
  operand->kind = type.kind;
  operand->doubt = OPERAND_SURE;
  operand->makes_numpy = type.numpy != NUMPY_NONE;
  operand->info = info;
  operand->index = index;
  operand->object = object;
  operand->api = type.api;
  operand->stream = stream;
  operand->managed = NULL;
  if (type.is_immutable && operand_is_output(operand))
    return operand_fail(operand, PyExc_TypeError, "JAX's arrays are not written into; call without out");
  switch (type.kind) {
    case OPERAND_EXCHANGE:
      return ask_for_bits(operand, &type) ? -1 : ask_for_gradients(operand, &type, stream);
    case OPERAND_DLPACK: return use_protocol(operand, stream);
    case OPERAND_BUFFER: return use_managed(operand, buffer_import(object));
    case OPERAND_NONE: return take_none(operand, &type);
    case OPERAND_NUMBER:
      return operand_is_output(operand) ? operand_fail(operand, PyExc_TypeError, "a number holds no result") : 0;
    default: return 0;
  }
}

int operand_take(PyObject *object, const quern_op_info *info, int32_t index, void *stream, operand *operand) {
  const operand_type *place = place_of(Py_TYPE(object));
  const int is_input_number = place->kind == OPERAND_NUMBER && index < info->n_in;
  const int is_quick = place->kind == OPERAND_NUMPY || place->kind == OPERAND_ARRAY || is_input_number;
  if (place->type != Py_TYPE(object) || !is_quick)
    return take_slowly(object, info, index, stream, operand);
  operand->kind = place->kind;
  operand->doubt = OPERAND_SURE;
  operand->makes_numpy = place->numpy != NUMPY_NONE;
  operand->info = info;
  operand->index = index;
  operand->object = object;
  operand->api = place->api;
  operand->stream = stream;
  operand->managed = NULL;
  return 0;
}

/* ---- Reading ---- */

/* Whether there is a shape to be read. */
static int has_shape(const DLTensor *tensor) {
  return tensor->ndim == 0 || (tensor->ndim > 0 && tensor->ndim <= QUERN_MAX_NDIM && tensor->shape);
}

/* Whether calls take the tensor unchanged; quern_managed_import converts or refuses all others. */
static int is_usual(const struct DLManagedTensorVersioned *managed) {
  const DLTensor *tensor = &managed->dl_tensor;
  return managed->version.major == DLPACK_MAJOR_VERSION && tensor->dtype.bits % 8 == 0 && has_shape(tensor);
}

/* The error of a failed exchange API that set no exception. */
static int refuse_nothing(const operand *operand) {
  if (PyErr_Occurred()) return -1;
  return operand_fail(operand, PyExc_BufferError, "its type's exchange API has handed over nothing");
}

static int import_by_api(operand *operand) {
  struct DLManagedTensorVersioned *managed = NULL;
  if (operand->api->managed_tensor_from_py_object_no_sync(operand->object, &managed) || !managed)
    return refuse_nothing(operand);
  quern_status status = is_usual(managed) ? QUERN_OK : quern_managed_import(managed, 0, &managed);
  if (status == QUERN_OK) return use_managed(operand, managed);
  raise_exchange(status);
  return -1;
}

/* Outputs are held at once: a bare tensor has no READ_ONLY flag. */
static int borrow(operand *operand) {
  const DLPackExchangeAPI *api = operand->api;
  operand_doubt doubt = operand->doubt;
  if (operand->managed) return 0;
  if (!operand_is_output(operand) && api->dltensor_from_py_object_no_sync) {
    if (api->dltensor_from_py_object_no_sync(operand->object, &operand->own)) doubt = OPERAND_REFUSED;
    else if (!has_shape(&operand->own))
      return operand_fail(operand, PyExc_BufferError, "%d dimensions, %s shape; at most %d", (int)operand->own.ndim,
                          operand->own.shape ? "with a" : "no", QUERN_MAX_NDIM);
    operand->tensor = &operand->own;
    operand->flags = 0;
  } else if (import_by_api(operand)) {
    doubt = OPERAND_REFUSED;
  }
  if (doubt == OPERAND_REFUSED && !clear_refusal())
    return -1;
  if (doubt == OPERAND_LAZY && operand->tensor->dtype.code != kDLComplex)
    doubt = OPERAND_SURE;
  operand->doubt = doubt;
  return 0;
}

int operand_read(operand *operand) {
  switch (operand->kind) {
    case OPERAND_NUMPY: return numpy_read(operand);
    case OPERAND_EXCHANGE: return borrow(operand);
    case OPERAND_ARRAY:
      operand->tensor = &array_managed(operand->object)->dl_tensor;
      operand->flags = array_managed(operand->object)->flags;
      return 0;
    default: return 0;
  }
}

int operand_hold(operand *operand) {
  int is_borrowed = operand->kind == OPERAND_EXCHANGE && !operand->managed && operand->doubt != OPERAND_REFUSED;
  return is_borrowed ? import_by_api(operand) : 0;
}

/* Imports again from a producer that was given another stream than that of the work. */
static int tell_stream(operand *operand, void *stream) {
  if (operand->tensor->device.device_type == kDLCPU || stream == operand->stream) return 0;
  managed_drop(operand->managed);
  operand->managed = NULL;
  return use_protocol(operand, stream);
}

int operand_settle(operand *operand, void *stream) {
  if (operand->kind == OPERAND_DLPACK) return tell_stream(operand, stream);
  if (operand->doubt == OPERAND_REFUSED) return use_protocol(operand, stream);
  if (operand->doubt != OPERAND_LAZY) return 0;
  int conjugates = says(operand->object, is_conj);
  return conjugates > 0 ? refuse_lazy(operand) : conjugates;
}
