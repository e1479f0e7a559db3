/* SPDX-License-Identifier: Apache-2.0
 *
 * limited.h: Python.h under the stable ABI of CPython 3.9, with declarations of functions that every CPython since 3.9 exports,
 * but that joined the limited API later: the buffer protocol (3.11) and the calling conventions FASTCALL (3.10) and vectorcall
 * (3.12). Their binary forms have not changed since 3.9. Free-threaded CPythons have no stable ABI: there it is all of Python.h,
 * for the version that it is compiled for. */
#ifndef QUERN_PYTHON_LIMITED_H
#define QUERN_PYTHON_LIMITED_H

#define PY_SSIZE_T_CLEAN
#include <pyconfig.h> /* Py_GIL_DISABLED */
#if !defined(Py_LIMITED_API) && !defined(Py_GIL_DISABLED)
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <stddef.h>
#include <stdint.h>

#ifndef PyBUF_SIMPLE
typedef struct {
  void *buf;
  PyObject *obj; /* owned reference */
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char *format;
  Py_ssize_t *shape;
  Py_ssize_t *strides;
  Py_ssize_t *suboffsets;
  void *internal;
} Py_buffer;

typedef int (*getbufferproc)(PyObject *, Py_buffer *, int);
typedef void (*releasebufferproc)(PyObject *, Py_buffer *);

PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *object);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);

#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
#define PyBUF_F_CONTIGUOUS (0x0040 | PyBUF_STRIDES)
#define PyBUF_ANY_CONTIGUOUS (0x0080 | PyBUF_STRIDES)
#define PyBUF_INDIRECT (0x0100 | PyBUF_STRIDES)
#define PyBUF_RECORDS (PyBUF_STRIDES | PyBUF_WRITABLE | PyBUF_FORMAT)
#define PyBUF_RECORDS_RO (PyBUF_STRIDES | PyBUF_FORMAT)
#endif

#ifndef Py_bf_getbuffer
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
#endif

#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030c0000
typedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))
/* A macro, since some headers do declare the function. */
#define PyVectorcall_NARGS(n) ((Py_ssize_t)((size_t)(n) & ~PY_VECTORCALL_ARGUMENTS_OFFSET))
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *callable, PyObject *tuple, PyObject *dict);
#endif

/* Py_NewRef, of 3.10. */
static inline PyObject *new_ref(PyObject *object) {
  Py_INCREF(object);
  return object;
}

/* PyModule_AddObjectRef, of 3.10, except that it takes over the reference, on failure too. The object may be NULL after an
 * exception. */
static inline int module_add(PyObject *module, const char *name, PyObject *object) {
  int failed = object ? PyObject_SetAttrString(module, name, object) : -1;
  Py_XDECREF(object);
  return failed;
}

/* Whether there is such an attribute: 1, 0; -1: an exception of foreign code, other than AttributeError. */
static inline int has_attribute(PyObject *object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object, name);
  if (!value && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  if (!value) PyErr_Clear();
  Py_XDECREF(value);
  return value != NULL;
}

/* Clears an exception that means "no". 0: an exception that must be passed on (exit, interrupt, out of memory): it is kept. */
static inline int clear_refusal(void) {
  if (!PyErr_Occurred()) return 1;
  if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return 0;
  if (PyErr_ExceptionMatches(PyExc_RecursionError)) return 0;
  PyErr_Clear();
  return 1;
}

/* PyMemberDef's, which structmember.h declares until 3.12. */
#ifndef Py_T_PYSSIZET
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

#endif
