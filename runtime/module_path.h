/* module_path.h: where the library's modules lie. Never in the working directory. */
#ifndef QN_MODULE_PATH_H
#define QN_MODULE_PATH_H

#include <stddef.h>

/* The path of a module ("quern-gen.so") that exists: in QUERN_MODULE_DIR, beside this library, in quern/ beside it, or where
 * it is installed. 0: there is none; `path` then holds a sentence that says where it was looked for. */
int qn_module_path(const char *name, char *path, size_t size);

#endif
