/* SPDX-License-Identifier: Apache-2.0
 *
 * quern_module.c: the extension module quern._quern, assembled from the other files. */
#include <quern/quern.h>

#include "array/array_dlpack.h"
#include "array/array_type.h"
#include "op/context.h"
#include "op/op.h"
#include "types/dtypes.h"
#include "types/promotion.h"
#include "xla/xla_module.h"

static int add_version(PyObject *module) {
  uint32_t version = quern_version();
  return module_add(module, "__version__",
                    PyUnicode_FromFormat("%d.%d.%d", (int)(version >> 16), (int)(version >> 8 & 255), (int)(version & 255)));
}

/* Types and caches are per process, not per interpreter: only the first interpreter may load the module, also more than
 * once. */
static int execute(PyObject *module) {
  static int64_t owner = -1;
  const int64_t interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (interpreter < 0 || (owner >= 0 && interpreter != owner)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "quern._quern is loaded already, by another interpreter");
    return -1;
  }
  owner = interpreter;
  if (add_version(module) || dtypes_add(module) || promotion_add(module) || array_add(module)) return -1;
  return op_add(module) || context_add(module) || xla_add(module) ? -1 : 0;
}

static PyMethodDef functions[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))array_from_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(x, /, *, device=None, copy=None)\n--\n\n"
     "x as a quern.Array, of the same memory if possible. x: an object with __dlpack__ or a buffer, or a DLPack capsule.\n"
     "device: the wanted device, 'cuda:0' or DLPack's (type, id). copy: True: always a copy; False: never, BufferError if one\n"
     "would be needed."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "quern._quern",
    .m_doc = "Quern's C extension; the package quern has its names.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__quern(void) { return PyModuleDef_Init(&definition); }
