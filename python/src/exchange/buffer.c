/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.c: the buffer protocol, both ways: an object's buffer as a managed tensor, and a tensor as a buffer. Suboffsets and
 * formats of several fields are refused: tensors do not have them. */
#include "exchange/buffer.h" /* before system headers: limited.h sets feature macros */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/errors.h"
#include "types/device_object.h"
#include "types/dtypes.h"
#include "types/items.h"

int buffer_has(PyObject *object) { return PyObject_CheckBuffer(object); }

/* ---- In ---- */

typedef struct held_view {
  Py_buffer view;
  struct held_view *next; /* in `left` */
} held_view;

/* Releases a view. The exporter's code may run. A pending exception is kept. */
static void drop_view(held_view *held) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyBuffer_Release(&held->view);
  PyErr_Restore(type, value, traceback);
  free(held);
}

/* Releasing a view needs the GIL and a live interpreter. A thread that waits for the GIL when the interpreter begins to end
 * never returns. So, before that, close_views sets `closed` and waits until `inside`, the number of threads in release_view, is
 * 0. From then on only the thread that ends the interpreter releases views. Other views are not released; they are kept in the
 * list `left`, reachable for leak checkers. */
static atomic_int inside, closed;
static pthread_t closer; /* written before closed */
static _Atomic(held_view *) left;

static void release_view(void *owner) {
  held_view *held = owner;
  atomic_fetch_add(&inside, 1);
  if ((!atomic_load(&closed) || pthread_equal(pthread_self(), closer)) && Py_IsInitialized()) {
    const PyGILState_STATE state = PyGILState_Ensure();
    drop_view(held);
    PyGILState_Release(state);
  } else {
    held->next = atomic_load(&left);
    while (!atomic_compare_exchange_weak(&left, &held->next, held)) continue;
  }
  atomic_fetch_sub(&inside, 1);
}

/* For atexit. Waits, without the GIL, until `inside` is 0, but at most two seconds, in case such a thread waits for this
 * one. */
static PyObject *close_views(PyObject *self, PyObject *unused) {
  const struct timespec millisecond = {0, 1000000};
  (void)self;
  (void)unused;
  closer = pthread_self();
  atomic_store(&closed, 1);
  Py_BEGIN_ALLOW_THREADS
  for (int i = 0; i < 2000 && atomic_load(&inside) > 0; i++) nanosleep(&millisecond, NULL);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

int buffer_start(void) {
  static PyMethodDef close_method = {"close_views", close_views, METH_NOARGS, NULL};
  PyObject *atexit = PyImport_ImportModule("atexit"), *function = PyCFunction_New(&close_method, NULL), *result = NULL;
  atomic_store(&closed, 0);
  if (atexit && function) result = PyObject_CallMethod(atexit, "register", "O", function);
  Py_XDECREF(atexit);
  Py_XDECREF(function);
  Py_XDECREF(result);
  return result ? 0 : -1;
}

/* Describes the view as a tensor; tensor->shape and strides point to arrays of the caller. -1: BufferError. */
static int describe(const Py_buffer *view, DLTensor *tensor) {
  const dtype_row *row = dtype_by_format(view->format, view->itemsize);
  if (!row) {
    PyErr_Format(PyExc_BufferError, "buffer: format '%.100s' of %zd bytes is no dtype in this machine's order of bytes",
                 view->format ? view->format : "B", view->itemsize);
    return -1;
  }
  if (view->ndim < 0 || view->ndim > QUERN_MAX_NDIM) {
    PyErr_Format(PyExc_BufferError, "buffer: %d dimensions, at most %d are possible", view->ndim, QUERN_MAX_NDIM);
    return -1;
  }
  tensor->data = view->buf;
  tensor->device = (DLDevice){kDLCPU, 0};
  tensor->ndim = view->ndim;
  tensor->dtype = dtype_dlpack(row);
  for (int d = 0; d < view->ndim; d++) {
    tensor->shape[d] = view->shape ? view->shape[d] : view->len / view->itemsize; /* no shape: one dimension */
    if (view->suboffsets && view->suboffsets[d] >= 0) {
      PyErr_Format(PyExc_BufferError, "buffer: dimension %d has suboffsets", d);
      return -1;
    }
    if (!view->strides) continue;
    tensor->strides[d] = view->strides[d] / view->itemsize;
    if (tensor->shape[d] > 1 && view->strides[d] % view->itemsize != 0) {
      PyErr_Format(PyExc_BufferError, "buffer: stride %zd of dimension %d is no multiple of the %zd bytes of an item",
                   view->strides[d], d, view->itemsize);
      return -1;
    }
  }
  if (!view->strides) tensor->strides = NULL;
  return 0;
}

/* Guarded against recursion: a class's __buffer__ may call this for the same object. */
static int get_view(PyObject *object, Py_buffer *view) {
  if (Py_EnterRecursiveCall(" while a buffer is imported")) return -1;
  int failed = PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO);
  Py_LeaveRecursiveCall();
  return failed;
}

/* A function of its own, so that its arrays are not on the stack while foreign code runs. */
static __attribute__((noinline)) struct DLManagedTensorVersioned *wrap_view(held_view *held) {
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  DLTensor tensor = {.shape = shape, .strides = strides};
  struct DLManagedTensorVersioned *managed;
  quern_status status;
  if (describe(&held->view, &tensor) == 0) {
    const uint64_t flags = held->view.readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    status = quern_managed_wrap(&tensor, flags, release_view, held, &managed);
    if (status == QUERN_OK) return managed;
    raise_exchange(status);
  }
  drop_view(held);
  return NULL;
}

struct DLManagedTensorVersioned *buffer_import(PyObject *object) {
  held_view *held = malloc(sizeof *held); /* not PyMem: it may be freed without the GIL */
  if (!held) return (void *)PyErr_NoMemory();
  if (get_view(object, &held->view) == 0) return wrap_view(held);
  free(held);
  return NULL;
}

/* ---- Out ---- */

/* Whether the items lie one after the other in row-major (step -1) or column-major (step 1) order. */
static int is_compact(const DLTensor *tensor, int step) {
  int64_t items = 1;
  for (int i = 0; i < tensor->ndim; i++) {
    if (tensor->shape[i] == 0) return 1;
  }
  for (int i = 0; i < tensor->ndim; i++) {
    const int d = step < 0 ? tensor->ndim - 1 - i : i;
    if (tensor->shape[d] != 1 && tensor->strides[d] != items) return 0;
    items *= tensor->shape[d];
  }
  return 1;
}

static int refuse(const char *reason) {
  PyErr_Format(PyExc_BufferError, "quern.Array: %s", reason);
  return -1;
}

/* Checks that the tensor fulfils the consumer's flags. */
static int check(const struct DLManagedTensorVersioned *managed, int flags) {
  const DLTensor *tensor = &managed->dl_tensor;
  const int64_t most = PY_SSIZE_T_MAX / (tensor->dtype.bits / 8);
  const int rows = is_compact(tensor, -1), columns = is_compact(tensor, 1);
  if (!device_is_host(tensor->device)) {
    return refuse("its memory is not the host's; quern.from_dlpack(x, device='cpu') makes a copy there");
  }
  if (tensor_n_items(tensor) > most) return refuse("it has more bytes than can be counted");
  if ((flags & PyBUF_WRITABLE) && (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)) return refuse("it is read-only");
  if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !rows) return refuse("it is not contiguous in row-major order");
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !columns) {
    return refuse("it is not contiguous in column-major order");
  }
  if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !rows && !columns) return refuse("it is not contiguous");
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !rows) {
    return refuse("it is not contiguous in row-major order, and the consumer takes no strides");
  }
  return 0;
}

static char *format_of(DLDataType type) {
  const dtype_row *row = dtype_of(type);
  if (row && row->format) return (char *)row->format;
  PyErr_Format(PyExc_BufferError, "quern.Array: the buffer protocol has no format for %s; DLPack has it",
               row ? row->long_name : "this dtype");
  return NULL;
}

int buffer_fill(Py_buffer *view, PyObject *exporter, const struct DLManagedTensorVersioned *managed, int flags) {
  static char nothing; /* the address of empty tensors without memory */
  const DLTensor *tensor = &managed->dl_tensor;
  const Py_ssize_t itemsize = tensor->dtype.bits / 8;
  const int64_t n_items = tensor_n_items(tensor);
  Py_ssize_t *numbers;
  view->obj = NULL;
  if (check(managed, flags)) return -1;
  view->format = NULL;
  if ((flags & PyBUF_FORMAT) && !(view->format = format_of(tensor->dtype))) return -1;
  numbers = malloc(sizeof *numbers * (2 * (size_t)tensor->ndim + 1));
  if (!numbers) {
    PyErr_NoMemory();
    return -1;
  }
  for (int d = 0; d < tensor->ndim; d++) {
    numbers[d] = (Py_ssize_t)tensor->shape[d];
    numbers[tensor->ndim + d] = n_items == 0 ? 0 : (Py_ssize_t)((uint64_t)tensor->strides[d] * (uint64_t)itemsize);
  }
  view->buf = tensor->data ? tensor_first(tensor) : &nothing;
  view->len = (Py_ssize_t)n_items * itemsize;
  view->itemsize = itemsize;
  view->readonly = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  view->ndim = tensor->ndim;
  view->shape = flags & PyBUF_ND && tensor->ndim ? numbers : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && tensor->ndim ? numbers + tensor->ndim : NULL;
  view->suboffsets = NULL;
  view->internal = numbers;
  view->obj = new_ref(exporter);
  return 0;
}

void buffer_clear(Py_buffer *view) { free(view->internal); }
