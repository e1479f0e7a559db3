/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_environment.h: the environment variables of run-time compilation and of profiles, which generated trees do not read. */
#ifndef QN_JIT_ENVIRONMENT_H
#define QN_JIT_ENVIRONMENT_H

/* Their values, as qn_environment_get returns them. */
const char *qn_environment_jit(void);        /* QUERN_JIT: off, sync or async: the host's default */
const char *qn_environment_cc(void);         /* QUERN_CC: a C compiler as a tier of its own */
const char *qn_environment_cache_dir(void);  /* QUERN_CACHE_DIR */
const char *qn_environment_user_cache(void); /* XDG_CACHE_HOME */
const char *qn_environment_home(void);       /* HOME */
const char *qn_environment_dump(void);       /* QUERN_DUMP: a folder for sources and compiler logs */
const char *qn_environment_profile(void);    /* QUERN_PROFILE: 1, or a file, for a line a call */
const char *qn_environment_record(void);     /* QUERN_RECORD: a file that lists what was compiled */
const char *qn_environment_module_dir(void); /* QUERN_MODULE_DIR: where the modules lie */
const char *qn_environment_cuda_path(void);  /* QUERN_CUDA_PATH: where CUDA's libraries lie */
const char *qn_environment_path(void);       /* PATH */

/* QUERN_TEST_COMPILER, for tests: "hold=MILLISECONDS" delays each compile; "fatal" makes LLVM report a fatal error. */
const char *qn_environment_test_compiler(void);

#endif
