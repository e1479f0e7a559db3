/* SPDX-License-Identifier: Apache-2.0
 *
 * numpy_array.c: see numpy_array.h. The structs are the first fields of PyArrayObject_fields and PyArray_Descr of
 * numpy/ndarraytypes.h, which are the same in 1.x and 2.x. */
#include "operand/numpy_array.h"

#include <string.h>

#include "base/remedy.h"

typedef struct descr_fields {
  PyObject_HEAD
  PyTypeObject *typeobj;
  char kind, type, byteorder, flags;
  int type_num;
} descr_fields;

typedef struct array_fields {
  PyObject_HEAD
  char *data;
  int nd;
  intptr_t *dimensions, *strides; /* strides in bytes */
  PyObject *base;
  descr_fields *descr;
  int flags;
} array_fields;

_Static_assert(sizeof(intptr_t) == sizeof(int64_t), "npy_intp is taken for int64_t");

#define ARRAY_WRITEABLE 0x0400

/* Indices into numpy.core's table of functions, and the supported versions of the binary interface. */
#define API_ABI_VERSION 0
#define API_ARRAY_TYPE 2
#define API_ARRAY_NEW 93
#define ABI_1 0x01000009u
#define ABI_2 0x02000000u

typedef unsigned (*abi_version_fn)(void);
typedef PyObject *(*array_new_fn)(PyTypeObject *type, int nd, const intptr_t *dimensions, int type_num, const intptr_t *strides,
                                  void *data, int itemsize, int flags, PyObject *object);

/* Found once: NumPy is never unloaded. */
static struct {
  void **api;          /* NULL: not found yet, or unknown */
  PyTypeObject *array; /* numpy.ndarray, borrowed from the table */
  PyObject *scalar;    /* numpy.generic, owned */
  const dtype_row *dtypes[32]; /* by type number */
} numpy;

/* An attribute of a module that is loaded: a new reference, or NULL without an exception. */
static PyObject *loaded_attribute(const char *module_name, const char *name) {
  PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), module_name);
  PyObject *value = NULL;
  if (module) {
    Py_INCREF(module);
    value = PyObject_GetAttrString(module, name);
    Py_DECREF(module);
  }
  PyErr_Clear();
  return value;
}

static void **find_api(void) {
  PyObject *capsule = loaded_attribute("numpy._core._multiarray_umath", "_ARRAY_API"); /* since 2.0 */
  if (!capsule) capsule = loaded_attribute("numpy.core._multiarray_umath", "_ARRAY_API");
  void **api = capsule && PyCapsule_IsValid(capsule, NULL) ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  Py_XDECREF(capsule); /* NumPy's module has it as long as the process runs */
  return api;
}

static int find_numpy(void) {
  void **api = find_api();
  if (!api) return 0;
  unsigned version = ((abi_version_fn)api[API_ABI_VERSION])();
  if (version != ABI_1 && version != ABI_2) return 0;
  if (!(numpy.scalar = loaded_attribute("numpy", "generic"))) return 0;
  numpy.api = api;
  numpy.array = api[API_ARRAY_TYPE];
  for (int k = 0; k < (int)(sizeof numpy.dtypes / sizeof *numpy.dtypes); k++) numpy.dtypes[k] = dtype_by_numpy(k);
  return 1;
}

static int is_masked(PyTypeObject *type) {
  PyObject *masked = loaded_attribute("numpy.ma", "MaskedArray");
  int is = masked && PyType_Check(masked) && PyType_IsSubtype(type, (PyTypeObject *)masked);
  Py_XDECREF(masked);
  return is;
}

numpy_kind numpy_kind_of(PyTypeObject *type) {
  if (!numpy.api && !find_numpy()) return NUMPY_NONE;
  if (type == numpy.array) return NUMPY_ARRAY;
  if (PyType_IsSubtype(type, numpy.array)) return is_masked(type) ? NUMPY_MASKED : NUMPY_ARRAY;
  if (PyType_Check(numpy.scalar) && PyType_IsSubtype(type, (PyTypeObject *)numpy.scalar)) return NUMPY_SCALAR;
  return NUMPY_NONE;
}

/* ---- Reading ---- */

static int is_swapped(char byteorder) {
  const uint16_t one = 1;
  return byteorder == (*(const uint8_t *)&one ? '>' : '<');
}

/* Types of other packages, such as ml_dtypes' bfloat16, have type numbers that differ by process; they are found by name. */
static const dtype_row *dtype_by_own_name(descr_fields *descr) {
  PyObject *name = PyObject_GetAttrString((PyObject *)descr->typeobj, "__name__");
  PyObject *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL;
  const dtype_row *row = text ? dtype_by_name(PyBytes_AsString(text)) : NULL;
  Py_XDECREF(text);
  Py_XDECREF(name);
  PyErr_Clear();
  return row;
}

#define FIRST_OF_OTHERS 256 /* NPY_USERDEF */

static const dtype_row *refuse_dtype(const operand *operand, PyObject *exception, const char *reason, PyObject *descr) {
  PyObject *remedy = remedy_of("of_dtype", descr);
  if (remedy) operand_fail(operand, exception, "NumPy's dtype %S is %s%U", descr, reason, remedy);
  Py_XDECREF(remedy);
  return NULL;
}

static const dtype_row *dtype_of_array(const operand *operand, descr_fields *descr) {
  const dtype_row *row = NULL;
  if (descr->type_num >= 0 && descr->type_num < (int)(sizeof numpy.dtypes / sizeof *numpy.dtypes))
    row = numpy.dtypes[descr->type_num];
  else if (descr->type_num >= FIRST_OF_OTHERS)
    row = dtype_by_own_name(descr);
  if (!row) return refuse_dtype(operand, PyExc_TypeError, "none that Quern knows", (PyObject *)descr);
  if (!is_swapped(descr->byteorder)) return row;
  return refuse_dtype(operand, PyExc_BufferError, "not in this machine's byte order", (PyObject *)descr);
}

int numpy_read(operand *operand) {
  const array_fields *array = (const array_fields *)(void *)operand->object;
  const dtype_row *row = dtype_of_array(operand, array->descr);
  if (!row) return -1;
  if (array->nd > QUERN_MAX_NDIM)
    return operand_fail(operand, PyExc_BufferError, "%d dimensions; at most %d", array->nd, QUERN_MAX_NDIM);
  const int64_t itemsize = row->bits / 8;
  const int shift = __builtin_ctz((unsigned)itemsize);
  int64_t remainder = 0;
  for (int d = 0; d < array->nd; d++) {
    operand->shape[d] = array->dimensions[d];
    operand->strides[d] = array->strides[d] >> shift;
    if (array->dimensions[d] > 1) remainder |= array->strides[d] & (itemsize - 1);
  }
  if (remainder)
    return operand_fail(operand, PyExc_BufferError, "strides that are no multiples of its items' %d bytes; give x.copy()", (int)itemsize);
  operand->own = (DLTensor){array->data, {kDLCPU, 0}, array->nd, dtype_dlpack(row), operand->shape, operand->strides, 0};
  operand->tensor = &operand->own;
  operand->flags = array->flags & ARRAY_WRITEABLE ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
  return 0;
}

int numpy_make(const dtype_row *dtype, const quern_shape *shape, operand *result) {
  intptr_t dimensions[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  const int32_t ndim = shape->ndim;
  const int itemsize = dtype->bits / 8;
  int is_row_major = 1;
  for (int32_t d = 0; d < ndim; d++) {
    dimensions[d] = result->shape[d] = shape->shape[d];
    result->strides[d] = shape->strides[d];
    strides[d] = shape->strides[d] * itemsize;
    is_row_major &= d == 0 || strides[d] <= strides[d - 1];
  }
  array_new_fn make = (array_new_fn)numpy.api[API_ARRAY_NEW];
  PyObject *object = make(numpy.array, ndim, dimensions, dtype->numpy, is_row_major ? NULL : strides, NULL, 0, 0, NULL);
  if (!object) return -1;
  result->object = object;
  result->own = (DLTensor){((const array_fields *)(void *)object)->data, {kDLCPU, 0}, ndim, shape->dtype, result->shape, result->strides, 0};
  result->tensor = &result->own;
  result->flags = 0;
  return 0;
}
