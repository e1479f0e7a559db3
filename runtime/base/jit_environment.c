/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_environment.c: see jit_environment.h. */
#include "base/jit_environment.h"

#include "core/base/environment.h"

const char *qn_environment_jit(void) { return qn_environment_get("QUERN_JIT"); }
const char *qn_environment_cc(void) { return qn_environment_get("QUERN_CC"); }
const char *qn_environment_cache_dir(void) { return qn_environment_get("QUERN_CACHE_DIR"); }
const char *qn_environment_user_cache(void) { return qn_environment_get("XDG_CACHE_HOME"); }
const char *qn_environment_home(void) { return qn_environment_get("HOME"); }
const char *qn_environment_dump(void) { return qn_environment_get("QUERN_DUMP"); }
const char *qn_environment_profile(void) { return qn_environment_get("QUERN_PROFILE"); }
const char *qn_environment_record(void) { return qn_environment_get("QUERN_RECORD"); }
const char *qn_environment_module_dir(void) { return qn_environment_get("QUERN_MODULE_DIR"); }
const char *qn_environment_cuda_path(void) { return qn_environment_get("QUERN_CUDA_PATH"); }
const char *qn_environment_path(void) { return qn_environment_get("PATH"); }
const char *qn_environment_test_compiler(void) { return qn_environment_get("QUERN_TEST_COMPILER"); }
