/* SPDX-License-Identifier: Apache-2.0
 *
 * dtypes.c: the table of dtypes, see dtypes.h; and quern.dtype, a type with one object for each row. Does not know which
 * dtypes an op takes. */
#include "types/dtypes.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/remedy.h"
#include "types/xla_dtypes.h"

/* NumPy's type numbers are those of C's types: the 64-bit ones are NPY_LONG and NPY_LONGLONG, or the latter alone. */
#if LONG_MAX > 0x7fffffffL
#define NUMPY_I64 7
#define NUMPY_I32 5
#else
#define NUMPY_I64 9
#define NUMPY_I32 7
#endif

#define WHOLE {NO_FLOAT, 0, 0, 0}

/* Dtypes of whole bytes. Those that Quern does not name have DLPack's names. */
static const dtype_row rows[] = {
    {"bool", "bool", kDLBool, 8, "?", 0, XLA_PRED, WHOLE},
    {"i8", "int8", kDLInt, 8, "b", 1, XLA_S8, WHOLE},
    {"i16", "int16", kDLInt, 16, "h", 3, XLA_S16, WHOLE},
    {"i32", "int32", kDLInt, 32, "i", NUMPY_I32, XLA_S32, WHOLE},
    {"i64", "int64", kDLInt, 64, NUMPY_I64 == 7 ? "l" : "q", NUMPY_I64, XLA_S64, WHOLE},
    {"u8", "uint8", kDLUInt, 8, "B", 2, XLA_U8, WHOLE},
    {"u16", "uint16", kDLUInt, 16, "H", 4, XLA_U16, WHOLE},
    {"u32", "uint32", kDLUInt, 32, "I", NUMPY_I32 + 1, XLA_U32, WHOLE},
    {"u64", "uint64", kDLUInt, 64, NUMPY_I64 == 7 ? "L" : "Q", NUMPY_I64 + 1, XLA_U64, WHOLE},
    {"f16", "float16", kDLFloat, 16, "e", 23, XLA_F16, {IEEE, 5, 10, 15}},
    {"bf16", "bfloat16", kDLBfloat, 16, NULL, -1, XLA_BF16, {IEEE, 8, 7, 127}},
    {"f32", "float32", kDLFloat, 32, "f", 11, XLA_F32, {IEEE, 8, 23, 127}},
    {"f64", "float64", kDLFloat, 64, "d", 12, XLA_F64, {IEEE, 11, 52, 1023}},
    {"c64", "complex64", kDLComplex, 64, "Zf", 14, XLA_C64, {IEEE, 8, 23, 127}},
    {"c128", "complex128", kDLComplex, 128, "Zd", 15, XLA_C128, {IEEE, 11, 52, 1023}},
    {"float8_e3m4", "float8_e3m4", kDLFloat8_e3m4, 8, NULL, -1, XLA_F8E3M4, {IEEE, 3, 4, 3}},
    {"float8_e4m3", "float8_e4m3", kDLFloat8_e4m3, 8, NULL, -1, XLA_F8E4M3, {IEEE, 4, 3, 7}},
    {"float8_e4m3b11fnuz", "float8_e4m3b11fnuz", kDLFloat8_e4m3b11fnuz, 8, NULL, -1, XLA_F8E4M3B11FNUZ, {ZERO_UNSIGNED, 4, 3, 11}},
    {"f8_e4m3fn", "float8_e4m3fn", kDLFloat8_e4m3fn, 8, NULL, -1, XLA_F8E4M3FN, {FINITE, 4, 3, 7}},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", kDLFloat8_e4m3fnuz, 8, NULL, -1, XLA_F8E4M3FNUZ, {ZERO_UNSIGNED, 4, 3, 8}},
    {"float8_e5m2", "float8_e5m2", kDLFloat8_e5m2, 8, NULL, -1, XLA_F8E5M2, {IEEE, 5, 2, 15}},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", kDLFloat8_e5m2fnuz, 8, NULL, -1, XLA_F8E5M2FNUZ, {ZERO_UNSIGNED, 5, 2, 16}},
    {"float8_e8m0fnu", "float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, NULL, -1, XLA_F8E8M0FNU, {POWERS, 8, 0, 127}},
};

#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))

static const dtype_row *row_of(unsigned code, Py_ssize_t bits) {
  for (int i = 0; i < N_ROWS; i++) {
    if (rows[i].code == code && rows[i].bits == bits) return &rows[i];
  }
  return NULL;
}

const dtype_row *dtype_of(DLDataType type) { return type.lanes == 1 ? row_of(type.code, type.bits) : NULL; }

const dtype_row *dtype_by_name(const char *name) {
  for (int i = 0; i < N_ROWS; i++) {
    if (strcmp(rows[i].name, name) == 0 || strcmp(rows[i].long_name, name) == 0) return &rows[i];
  }
  return NULL;
}

const dtype_row *dtype_by_format(const char *format, Py_ssize_t itemsize) {
  const union {
    uint16_t word;
    char first_byte;
  } machine = {1};
  unsigned code;
  if (!format) return itemsize == 1 ? row_of(kDLUInt, 8) : NULL;
  if (*format == '@' || *format == '=' || *format == (machine.first_byte ? '<' : '>') ||
      (*format == '!' && !machine.first_byte)) {
    format++;
  }
  switch (*format) {
    case '?': code = kDLBool; break;
    case 'b': case 'h': case 'i': case 'l': case 'q': case 'n': code = kDLInt; break;
    case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': code = kDLUInt; break;
    case 'e': case 'f': case 'd': code = kDLFloat; break;
    case 'F': case 'D': code = kDLComplex; break; /* complex codes of struct since Python 3.14 */
    case 'Z':
      if (*++format != 'f' && *format != 'd') return NULL;
      code = kDLComplex;
      break;
    default: return NULL;
  }
  if (format[1] != '\0' || itemsize <= 0 || itemsize > 16) return NULL;
  return row_of(code, 8 * itemsize);
}

const dtype_row *dtype_by_numpy(int number) {
  if (sizeof(long) == sizeof(long long) && (number == 9 || number == 10)) number -= 2; /* NPY_LONGLONG is NPY_LONG */
  if (sizeof(long) == sizeof(int) && (number == 5 || number == 6)) number += 2;        /* NPY_INT is NPY_LONG */
  for (int i = 0; i < N_ROWS; i++) {
    if (rows[i].numpy == number && number >= 0) return &rows[i];
  }
  return NULL;
}

const dtype_row *dtype_by_xla(int number) {
  for (int i = 0; i < N_ROWS; i++) {
    if (rows[i].xla == number) return &rows[i];
  }
  return NULL;
}

const char *dtype_text(DLDataType type, char text[DTYPE_CHARS]) {
  const dtype_row *row = dtype_of(type);
  if (row) {
    snprintf(text, DTYPE_CHARS, "%s", row->name);
  } else if (type.lanes == 1) {
    snprintf(text, DTYPE_CHARS, "(code %u, %u bits)", (unsigned)type.code, (unsigned)type.bits);
  } else {
    snprintf(text, DTYPE_CHARS, "(code %u, %u bits, %u lanes)", (unsigned)type.code, (unsigned)type.bits,
             (unsigned)type.lanes);
  }
  return text;
}

/* ---- quern.dtype ---- */

typedef struct dtype_instance {
  PyObject_HEAD
  const dtype_row *row;
} dtype_instance;

/* Made once for the process, and never released. */
static PyTypeObject *dtype_type;
static PyObject *instances[N_ROWS];

static const dtype_row *row_in(PyObject *self) { return ((dtype_instance *)self)->row; }

PyObject *dtype_object(const dtype_row *row) { return new_ref(instances[row - rows]); }

/* The row of a str, or of the part after its last dot: "float32", "torch.float32". No exception. */
static const dtype_row *row_by_text(PyObject *text) {
  const dtype_row *row = NULL;
  PyObject *bytes;
  for (int i = 0; i < N_ROWS; i++) {
    if (PyUnicode_CompareWithASCIIString(text, rows[i].name) == 0) return &rows[i];
    if (PyUnicode_CompareWithASCIIString(text, rows[i].long_name) == 0) return &rows[i];
  }
  bytes = PyUnicode_AsUTF8String(text);
  if (bytes) {
    const char *name = PyBytes_AsString(bytes), *dot = strrchr(name, '.');
    if (dot && strlen(name) == (size_t)PyBytes_Size(bytes)) row = dtype_by_name(dot + 1);
    Py_DECREF(bytes);
  }
  PyErr_Clear();
  return row;
}

/* The attribute of that name, if it is a str; else NULL without an exception. */
static PyObject *text_attribute(PyObject *object, const char *name) {
  PyObject *text = PyObject_GetAttrString(object, name);
  if (text && PyUnicode_Check(text)) return text;
  Py_XDECREF(text);
  PyErr_Clear();
  return NULL;
}

/* By the attribute `name`, of numpy.dtype and its like. The name does not tell the byte order. */
static const dtype_row *row_by_name_attribute(PyObject *object) {
  const dtype_row *row = NULL;
  PyObject *name = text_attribute(object, "name");
  if (name) {
    row = row_by_text(name);
    Py_DECREF(name);
  }
  if (row) {
    PyObject *native = PyObject_GetAttrString(object, "isnative");
    if (native == Py_False) row = NULL;
    Py_XDECREF(native);
    PyErr_Clear();
  }
  return row;
}

/* A scalar type: Python's own, numpy.float32, numpy.bool_. */
static const dtype_row *row_by_type(PyObject *type) {
  static const struct {
    PyTypeObject *type;
    const char *name;
  } of_python[] = {{&PyBool_Type, "bool"}, {&PyLong_Type, "i64"}, {&PyFloat_Type, "f64"}, {&PyComplex_Type, "c128"}};
  const dtype_row *row = NULL;
  PyObject *name;
  for (size_t i = 0; i < sizeof of_python / sizeof of_python[0]; i++) {
    if (type == (PyObject *)of_python[i].type) return dtype_by_name(of_python[i].name);
  }
  name = text_attribute(type, "__name__");
  if (!name) return NULL;
  row = PyUnicode_CompareWithASCIIString(name, "bool_") == 0 ? dtype_by_name("bool") : row_by_text(name);
  Py_DECREF(name);
  return row;
}

/* By str(), for torch.float32 and its like, which have no name attribute. Only of objects with a type named dtype, DType or
 * similar: str() of an array would format all of its values. */
static const dtype_row *row_by_str(PyObject *object) {
  const dtype_row *row = NULL;
  PyObject *type_name = text_attribute((PyObject *)Py_TYPE(object), "__name__"), *text;
  const int is_dtype = type_name && (PyUnicode_CompareWithASCIIString(type_name, "dtype") == 0 ||
                                     PyUnicode_CompareWithASCIIString(type_name, "DType") == 0 ||
                                     PyUnicode_CompareWithASCIIString(type_name, "Dtype") == 0);
  Py_XDECREF(type_name);
  if (!is_dtype) return NULL;
  text = PyObject_Str(object);
  if (text) row = row_by_text(text);
  else PyErr_Clear();
  Py_XDECREF(text);
  return row;
}

/* No exception. */
static const dtype_row *row_named_by(PyObject *object) {
  const dtype_row *row;
  if (Py_TYPE(object) == dtype_type) return row_in(object);
  if (PyUnicode_Check(object)) return row_by_text(object);
  if (PyType_Check(object)) return row_by_type(object);
  row = row_by_name_attribute(object);
  return row ? row : row_by_str(object);
}

const dtype_row *dtype_from_object(PyObject *object) {
  const dtype_row *row = row_named_by(object);
  PyObject *remedy = row ? NULL : remedy_of("of_dtype_name", object);
  if (remedy) PyErr_Format(PyExc_TypeError, "dtype: %.200R names none that is known here%U", object, remedy);
  Py_XDECREF(remedy);
  return row;
}

static PyObject *dtype_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"", NULL};
  PyObject *object;
  const dtype_row *row;
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:dtype", names, &object)) return NULL;
  row = dtype_from_object(object);
  return row ? dtype_object(row) : NULL;
}

static PyObject *dtype_repr(PyObject *self) { return PyUnicode_FromFormat("quern.%s", row_in(self)->long_name); }

static PyObject *dtype_str(PyObject *self) { return PyUnicode_FromString(row_in(self)->long_name); }

/* Equal to every object that names the same dtype. Of those only the long name has the same hash. */
static PyObject *dtype_compare(PyObject *self, PyObject *other, int operation) {
  const dtype_row *row;
  if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  row = row_named_by(other);
  if (!row && Py_TYPE(other) != dtype_type && !PyUnicode_Check(other)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((row == row_in(self)) == (operation == Py_EQ));
}

static Py_hash_t dtype_hash(PyObject *self) {
  PyObject *name = PyUnicode_FromString(row_in(self)->long_name);
  const Py_hash_t hash = name ? PyObject_Hash(name) : -1;
  Py_XDECREF(name);
  return hash;
}

/* Pickled as the global of its name: a pickled or copied dtype is the same object. */
static PyObject *dtype_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  return dtype_str(self);
}

static PyObject *dtype_get_name(PyObject *self, void *unused) {
  (void)unused;
  return dtype_str(self);
}

static PyObject *dtype_get_short_name(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(row_in(self)->name);
}

static PyObject *dtype_get_itemsize(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(row_in(self)->bits / 8);
}

static PyObject *dtype_get_kind(PyObject *self, void *unused) {
  const char *kind;
  (void)unused;
  switch (row_in(self)->code) {
    case kDLBool: kind = "b"; break;
    case kDLInt: kind = "i"; break;
    case kDLUInt: kind = "u"; break;
    case kDLComplex: kind = "c"; break;
    default: kind = "f"; break;
  }
  return PyUnicode_FromString(kind);
}

static PyObject *dtype_get_dlpack(PyObject *self, void *unused) {
  (void)unused;
  return Py_BuildValue("(iii)", (int)row_in(self)->code, (int)row_in(self)->bits, 1);
}

/* For finfo: bits of the fraction, largest exponent. None: no float, or one without infinity. */
static PyObject *dtype_get_limits(PyObject *self, void *unused) {
  const float_format *number = &row_in(self)->number;
  (void)unused;
  return number->form == IEEE ? Py_BuildValue("(ii)", number->fraction_bits, number->bias) : new_ref(Py_None);
}

/* What NumPy takes it for, since 2.4. An AttributeError where NumPy has no such dtype. */
static PyObject *dtype_get_numpy(PyObject *self, void *unused) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *dtype = numpy ? PyObject_CallMethod(numpy, "dtype", "s", row_in(self)->long_name) : NULL;
  (void)unused;
  Py_XDECREF(numpy);
  if (!dtype && clear_refusal()) PyErr_Format(PyExc_AttributeError, "NumPy has no dtype %s here", row_in(self)->long_name);
  return dtype;
}

static PyGetSetDef dtype_attributes[] = {
    {"name", dtype_get_name, NULL, "Its name in the array API: 'float32'.", NULL},
    {"short_name", dtype_get_short_name, NULL, "Its name in expressions and messages: 'f32'.", NULL},
    {"itemsize", dtype_get_itemsize, NULL, "Bytes of an item.", NULL},
    {"kind", dtype_get_kind, NULL, "One letter, as NumPy's: b, i, u, f, c.", NULL},
    {"dlpack", dtype_get_dlpack, NULL, "DLPack's code, bits and lanes.", NULL},
    {"__numpy_dtype__", dtype_get_numpy, NULL, NULL, NULL},
    {"_limits", dtype_get_limits, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_doc, "dtype(object, /)\n--\n\nThe dtype that the object names: 'f32', 'float32', numpy.float32, torch.int8, float."},
    {Py_tp_new, (void *)dtype_new},
    {Py_tp_repr, (void *)dtype_repr},
    {Py_tp_str, (void *)dtype_str},
    {Py_tp_richcompare, (void *)dtype_compare},
    {Py_tp_hash, (void *)dtype_hash},
    {Py_tp_getset, dtype_attributes},
    {Py_tp_methods, dtype_methods},
    {0, NULL},
};

static PyType_Spec dtype_spec = {"quern.dtype", sizeof(dtype_instance), 0, Py_TPFLAGS_DEFAULT, dtype_slots};

int dtypes_add(PyObject *module) {
  if (!dtype_type && !(dtype_type = (PyTypeObject *)PyType_FromSpec(&dtype_spec))) return -1;
  if (module_add(module, "dtype", new_ref((PyObject *)dtype_type))) return -1;
  for (int i = 0; i < N_ROWS; i++) {
    if (!instances[i]) {
      dtype_instance *instance = PyObject_New(dtype_instance, dtype_type);
      if (!instance) return -1;
      instance->row = &rows[i];
      instances[i] = (PyObject *)instance;
    }
    if (module_add(module, rows[i].long_name, new_ref(instances[i]))) return -1;
  }
  return 0;
}
