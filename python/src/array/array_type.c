/* SPDX-License-Identifier: Apache-2.0
 *
 * array_type.c: the type quern.Array: a tensor as an object that owns it, or shares it with its producer. Attributes, values
 * and export protocols; operators and indexing are Python's (operators.h). */
#include "array/array_type.h"

#include "array/array_dlpack.h"
#include "array/array_make.h"
#include "array/array_object.h"
#include "array/exchange_api.h"
#include "array/gather.h"
#include "array/operators.h"
#include "base/errors.h"
#include "base/remedy.h"
#include "exchange/buffer.h"
#include "types/device_object.h"
#include "types/dtypes.h"
#include "types/items.h"

static const DLTensor *tensor_of(PyObject *self) { return &array_managed(self)->dl_tensor; }

static void array_delete(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  if (((array *)self)->weak_references) PyObject_ClearWeakRefs(self);
  holder_release(array_holder(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *array_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  (void)type;
  (void)args;
  (void)keywords;
  PyErr_SetString(PyExc_TypeError, "quern.Array: made by quern.from_dlpack, and by calls; not by its name");
  return NULL;
}

/* ---- Attributes ---- */

static PyObject *tuple_of(int n, const int64_t *numbers) {
  PyObject *tuple = PyTuple_New(n);
  for (int d = 0; tuple && d < n; d++) {
    PyObject *number = PyLong_FromLongLong(numbers[d]);
    if (number) {
      PyTuple_SetItem(tuple, d, number);
    } else {
      Py_DECREF(tuple);
      tuple = NULL;
    }
  }
  return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused) {
  (void)unused;
  return tuple_of(tensor_of(self)->ndim, tensor_of(self)->shape);
}

static PyObject *get_strides(PyObject *self, void *unused) {
  (void)unused;
  return tuple_of(tensor_of(self)->ndim, tensor_of(self)->strides);
}

static PyObject *get_dtype(PyObject *self, void *unused) {
  const dtype_row *row = dtype_of(tensor_of(self)->dtype);
  char text[DTYPE_CHARS];
  (void)unused;
  if (row) return dtype_object(row);
  return PyErr_Format(PyExc_TypeError, "quern.Array: there is no object for its dtype, %s",
                      dtype_text(tensor_of(self)->dtype, text));
}

static PyObject *get_ndim(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(tensor_of(self)->ndim);
}

static PyObject *get_size(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLongLong(tensor_n_items(tensor_of(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(tensor_of(self)->dtype.bits / 8);
}

/* a * b. Takes over both references. */
static PyObject *multiplied(PyObject *a, PyObject *b) {
  PyObject *product = a && b ? PyNumber_Multiply(a, b) : NULL;
  Py_XDECREF(a);
  Py_XDECREF(b);
  return product;
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
  (void)unused;
  return multiplied(get_size(self, NULL), get_itemsize(self, NULL)); /* unbounded for broadcast arrays */
}

static PyObject *get_device(PyObject *self, void *unused) {
  (void)unused;
  return device_object(tensor_of(self)->device);
}

static PyObject *get_readonly(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong((array_managed(self)->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
}

static PyGetSetDef array_attributes[] = {
    {"shape", get_shape, NULL, "The extents, a tuple.", NULL},
    {"strides", get_strides, NULL, "How many items lie between neighbours in each dimension, a tuple.", NULL},
    {"dtype", get_dtype, NULL, "The dtype, such as quern.float32.", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"size", get_size, NULL, "The number of items.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an item.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all items.", NULL},
    {"device", get_device, NULL, "Where the memory is: DLPack's pair (type, id), str() of which is 'cpu', 'cuda:0', ...", NULL},
    {"readonly", get_readonly, NULL, "Whether the memory must not be written.", NULL},
    {"T", array_transposed, NULL, "The dimensions in the opposite order, of the same memory.", NULL},
    {"mT", array_matrix_transposed, NULL, "The last two dimensions exchanged, of the same memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- Values ---- */

/* The tensor in memory that the host can read, after pending work: itself or a copy. */
static struct DLManagedTensorVersioned *on_host(PyObject *self) {
  const quern_export wish = {.size = sizeof wish, .device = {kDLCPU, 0}};
  return holder_export(array_holder(self), &wish);
}

static PyObject *array_item(PyObject *self, PyObject *unused) {
  struct DLManagedTensorVersioned *managed;
  PyObject *value;
  (void)unused;
  if (tensor_n_items(tensor_of(self)) != 1) {
    PyErr_Format(PyExc_ValueError, "quern.Array: it has %lld items; only one of 1 item is a number",
                 (long long)tensor_n_items(tensor_of(self)));
    return NULL;
  }
  managed = on_host(self);
  if (!managed) return NULL;
  value = value_object(managed->dl_tensor.dtype, tensor_first(&managed->dl_tensor));
  managed_drop(managed);
  return value;
}

/* With a format, that of the one item. */
static PyObject *array_format(PyObject *self, PyObject *spec) {
  PyObject *value, *text;
  if (!PyUnicode_Check(spec) || PyUnicode_GetLength(spec) == 0) return PyObject_Str(self);
  value = array_item(self, NULL);
  text = value ? PyObject_Format(value, spec) : NULL;
  Py_XDECREF(value);
  return text;
}

static PyObject *array_tolist(PyObject *self, PyObject *unused) {
  struct DLManagedTensorVersioned *managed = on_host(self);
  PyObject *list;
  (void)unused;
  if (!managed) return NULL;
  list = values_list(&managed->dl_tensor);
  managed_drop(managed);
  return list;
}

/* repr shows no values of unknown dtypes, of memory that cannot be copied here, or of more device items than this. */
#define SHOWN_DEVICE_ITEMS 1000

static PyObject *shown_values(PyObject *self, int indent) {
  const DLTensor *tensor = tensor_of(self);
  const int is_small = device_is_host(tensor->device) || tensor_n_items(tensor) <= SHOWN_DEVICE_ITEMS;
  struct DLManagedTensorVersioned *managed = is_small && dtype_of(tensor->dtype) ? on_host(self) : NULL;
  PyObject *text;
  if (!managed) {
    PyErr_Clear();
    return PyUnicode_FromString("...");
  }
  text = values_text(&managed->dl_tensor, indent);
  managed_drop(managed);
  return text;
}

/* text = format(text, object). Takes both references over. */
static PyObject *extend(const char *format, PyObject *text, PyObject *object) {
  PyObject *longer = text && object ? PyUnicode_FromFormat(format, text, object) : NULL;
  Py_XDECREF(text);
  Py_XDECREF(object);
  return longer;
}

/* Shows the shape if the values do not determine it, and the device unless it is the CPU. */
static PyObject *array_repr(PyObject *self) {
  static const char head[] = "quern.Array(";
  const DLTensor *tensor = tensor_of(self);
  const dtype_row *row = dtype_of(tensor->dtype);
  const int64_t n = tensor_n_items(tensor);
  char dtype[DTYPE_CHARS];
  PyObject *text = extend("%U%U", PyUnicode_FromString(head), shown_values(self, (int)sizeof head - 1));
  if (n == 0 || n > SHOWN_DEVICE_ITEMS) text = extend("%U, shape=%R", text, get_shape(self, NULL));
  text = extend("%U, dtype=%U", text, PyUnicode_FromString(row ? row->long_name : dtype_text(tensor->dtype, dtype)));
  if (tensor->device.device_type != kDLCPU) text = extend("%U, device='%S'", text, get_device(self, NULL));
  if (array_managed(self)->flags & DLPACK_FLAG_BITMASK_READ_ONLY) {
    text = extend("%U, readonly=%R", text, get_readonly(self, NULL));
  }
  return extend("%U%U", text, PyUnicode_FromString(")"));
}

static Py_ssize_t array_length(PyObject *self) {
  if (tensor_of(self)->ndim > 0) return (Py_ssize_t)tensor_of(self)->shape[0];
  PyErr_SetString(PyExc_TypeError, "quern.Array: of 0 dimensions has no length");
  return -1;
}

/* Converts an array of one item to a number. Takes over the reference. */
static PyObject *converted(PyObject *value, PyObject *(*convert)(PyObject *)) {
  PyObject *number = value ? convert(value) : NULL;
  Py_XDECREF(value);
  return number;
}

static PyObject *array_int(PyObject *self) { return converted(array_item(self, NULL), PyNumber_Long); }
static PyObject *array_float(PyObject *self) { return converted(array_item(self, NULL), PyNumber_Float); }
static PyObject *array_index(PyObject *self) { return converted(array_item(self, NULL), PyNumber_Index); }

static PyObject *complex_of(PyObject *value) { return PyObject_CallFunction((PyObject *)&PyComplex_Type, "O", value); }

static PyObject *array_complex(PyObject *self, PyObject *unused) { return converted(array_item(self, unused), complex_of); }

static int array_bool(PyObject *self) {
  PyObject *value = array_item(self, NULL);
  const int is_true = value ? PyObject_IsTrue(value) : -1;
  Py_XDECREF(value);
  return is_true;
}

/* ---- Export ---- */

static int array_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  if (device_is_host(tensor_of(self)->device) && tensor_of(self)->device.device_type != kDLCPU) {
    struct DLManagedTensorVersioned *managed = on_host(self); /* not a copy; waits for pending work of a device */
    if (!managed) {
      view->obj = NULL;
      return -1;
    }
    managed_drop(managed);
  }
  return buffer_fill(view, self, array_managed(self), flags);
}

static void array_releasebuffer(PyObject *self, Py_buffer *view) {
  (void)self;
  buffer_clear(view);
}

/* Whether the result has another dtype than the view; then sets an exception. */
static int is_other_dtype(PyObject *numpy, PyObject *view, PyObject *result) {
  PyObject *plain = PyObject_CallMethod(numpy, "asarray", "O", view);
  PyObject *mine = plain ? PyObject_GetAttrString(plain, "dtype") : NULL, *its = PyObject_GetAttrString(result, "dtype");
  const int is_same = mine && its ? PyObject_RichCompareBool(mine, its, Py_EQ) : -1;
  if (is_same == 0) PyErr_Format(PyExc_ValueError, "quern.Array: %S as %S takes a copy, and copy is False", mine, its);
  Py_XDECREF(its);
  Py_XDECREF(mine);
  Py_XDECREF(plain);
  return is_same != 1;
}

/* numpy.asarray calls this only if the buffer protocol has failed: the exception here tells the user why. */
static PyObject *array_array(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"dtype", "copy", NULL};
  PyObject *dtype = Py_None, *copy = Py_None, *view, *numpy, *result = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:__array__", names, &dtype, &copy)) return NULL;
  view = PyMemoryView_FromObject(self);
  if (!view) return NULL;
  numpy = PyImport_ImportModule("numpy");
  if (numpy) result = PyObject_CallMethod(numpy, copy == Py_True ? "array" : "asarray", "OO", view, dtype);
  if (result && copy == Py_False && dtype != Py_None && is_other_dtype(numpy, view, result)) Py_CLEAR(result);
  Py_XDECREF(numpy);
  Py_DECREF(view);
  return result;
}

static PyObject *array_namespace(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"api_version", NULL};
  PyObject *version = Py_None;
  (void)self;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$O:__array_namespace__", names, &version)) return NULL;
  return operator_call("namespace", version, NULL, NULL);
}

static PyObject *array_data_ptr(PyObject *self, PyObject *unused) {
  (void)unused;
  return PyLong_FromVoidPtr(tensor_first(tensor_of(self)));
}

static PyMethodDef array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A capsule of the tensor: versioned where max_version allows it, else of DLPack 0.x, which read-only memory does not get.\n"
     "The memory itself, or, with copy=True or another dl_device, a copy; copy=False never copies. stream: the consumer's, for\n"
     "memory of a device: None, 1, 2, a pointer, or -1. Only copies are ordered on it: an array does not know on which stream\n"
     "its memory is written."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDLPack's pair for where the memory is: (device type, index)."},
    {"__array__", (PyCFunction)(void (*)(void))array_array, METH_VARARGS | METH_KEYWORDS,
     "__array__($self, /, dtype=None, copy=None)\n--\n\nThe memory as a numpy.ndarray."},
    {"__array_namespace__", (PyCFunction)(void (*)(void))array_namespace, METH_VARARGS | METH_KEYWORDS,
     "__array_namespace__($self, /, *, api_version=None)\n--\n\nThe module quern.array_api."},
    {"__complex__", array_complex, METH_NOARGS, NULL},
    {"__format__", array_format, METH_O, NULL},
    {"reshape", (PyCFunction)(void (*)(void))array_reshape, METH_VARARGS | METH_KEYWORDS,
     "reshape($self, /, shape, *, copy=None)\n--\n\n"
     "The items in another shape, in row-major order: of the same memory if strides can say so, else of a copy. One extent may be -1."},
    {"item", array_item, METH_NOARGS, "item($self, /)\n--\n\nThe one item as a number."},
    {"tolist", array_tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe values as nested lists of numbers."},
    {"data_ptr", array_data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nThe address of the first item, an int."},
    {"to_device", (PyCFunction)(void (*)(void))array_to_device, METH_VARARGS | METH_KEYWORDS,
     "to_device($self, device, /, *, stream=None)\n--\n\nAn array of the same values there: the same memory if it is there."},
    {NULL, NULL, 0, NULL},
};

/* A name without an underscore in front that is not there: by people's habits from other libraries. */
static PyObject *array_attribute(PyObject *self, PyObject *name) {
  PyObject *value = PyObject_GenericGetAttr(self, name), *remedy;
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name)) return value;
  if (PyUnicode_GetLength(name) == 0 || PyUnicode_ReadChar(name, 0) == '_') return NULL;
  PyErr_Clear();
  remedy = remedy_of("of_attribute", name);
  if (remedy) PyErr_Format(PyExc_AttributeError, "'quern.Array' object has no attribute %R%U", name, remedy);
  Py_XDECREF(remedy);
  return NULL;
}

static PyMemberDef array_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(array, weak_references), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define BINARY_SLOT(slot, name) {Py_nb_##slot, (void *)array_operator_##slot}, {Py_nb_inplace_##slot, (void *)array_inplace_##slot},
#define UNARY_SLOT(slot, name) {Py_nb_##slot, (void *)array_operator_##slot},

static PyType_Slot array_slots[] = {
    {Py_tp_doc, "A tensor: a result of Quern's, or the memory of another library's tensor, which it keeps alive. Other\n"
                "libraries take it without a copy, by DLPack or the buffer protocol: numpy.asarray(x), torch.from_dlpack(x).\n"
                "Operators are Quern's ops; x[...] of whole numbers, slices, ... and None is a view. See quern.array_api."},
    {Py_tp_new, (void *)array_refuse_new},
    {Py_tp_dealloc, (void *)array_delete},
    {Py_tp_repr, (void *)array_repr},
    {Py_tp_getattro, (void *)array_attribute},
    {Py_tp_getset, array_attributes},
    {Py_tp_methods, array_methods},
    {Py_tp_members, array_members},
    {Py_tp_richcompare, (void *)array_compare},
    {Py_tp_hash, (void *)array_hash},
    {Py_tp_iter, (void *)array_iterate},
    {Py_mp_length, (void *)array_length},
    {Py_mp_subscript, (void *)array_get_items},
    {Py_mp_ass_subscript, (void *)array_set_items},
    ARRAY_BINARY_OPERATORS(BINARY_SLOT)
    ARRAY_UNARY_OPERATORS(UNARY_SLOT)
    {Py_nb_divmod, (void *)array_divmod},
    {Py_nb_power, (void *)array_power},
    {Py_nb_inplace_power, (void *)array_inplace_power},
    {Py_nb_bool, (void *)array_bool},
    {Py_nb_int, (void *)array_int},
    {Py_nb_float, (void *)array_float},
    {Py_nb_index, (void *)array_index},
    {Py_bf_getbuffer, (void *)array_getbuffer},
    {Py_bf_releasebuffer, (void *)array_releasebuffer},
    {0, NULL},
};

static PyType_Spec array_spec = {"quern.Array", sizeof(array), 0, Py_TPFLAGS_DEFAULT, array_slots};

static int make_type(void) {
  PyObject *type = PyType_FromSpec(&array_spec), *capsule = type ? exchange_api_capsule() : NULL;
  if (capsule && PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", capsule) == 0) array_set_type((PyTypeObject *)type);
  Py_XDECREF(capsule);
  if (!array_get_type()) Py_XDECREF(type);
  return array_get_type() ? 0 : -1;
}

int array_add(PyObject *module) {
  if (device_add(module) || array_make_add(module) || gather_add(module) || buffer_start() || (!array_get_type() && make_type())) return -1;
  return module_add(module, "Array", new_ref((PyObject *)array_get_type()));
}
