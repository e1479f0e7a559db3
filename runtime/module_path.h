/* module_path.h: where the library's modules lie. Never in the working directory. */
#ifndef QN_MODULE_PATH_H
#define QN_MODULE_PATH_H

#include <stddef.h>

/* The path of a module ("quern-gen.so") that exists: in QUERN_MODULE_DIR, in quern/ beside this library, beside it, or where
 * it is installed; the first of these. 0: there is none; `path` then holds a sentence that says where it was looked for. */
int qn_module_path(const char *name, char *path, size_t size);

#endif
