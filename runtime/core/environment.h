/* environment.h: the environment variables, read nowhere else. All of them are ignored in a program that runs with more
 * rights than its user (secure_getenv). Nothing is kept: a call reads anew. Knows neither ISA levels nor logs beyond their
 * numbers. */
#ifndef QN_ENVIRONMENT_H
#define QN_ENVIRONMENT_H

#include <stdint.h>

/* The texts of variables, or NULL where they are unset or empty. They point into the environment. */
const char *qn_environment_jit(void);        /* QUERN_JIT: off, sync or async, where the host does not say */
const char *qn_environment_cc(void);         /* QUERN_CC: a C compiler as a tier of its own */
const char *qn_environment_cache_dir(void);  /* QUERN_CACHE_DIR */
const char *qn_environment_user_cache(void); /* XDG_CACHE_HOME */
const char *qn_environment_home(void);       /* HOME */
const char *qn_environment_dump(void);       /* QUERN_DUMP: a folder for sources and compiler logs */
const char *qn_environment_record(void);     /* QUERN_RECORD: a file that lists what was compiled */
const char *qn_environment_module_dir(void); /* QUERN_MODULE_DIR: where the modules lie */
const char *qn_environment_path(void);       /* PATH */

/* What tests ask of the compiler, QUERN_TEST_COMPILER: "hold=MILLISECONDS" before each compile, "fatal": LLVM is made to fail. */
const char *qn_environment_test_compiler(void);

/* The text of QUERN_ISA ("generic", "v2", "v3", "v4"), or NULL. */
const char *qn_environment_isa(void);

/* QUERN_NUM_THREADS: how many threads a call uses where the host does not say, 0 if unset or not a number of 1 to 9999. */
int32_t qn_environment_threads(void);

/* QUERN_LOG: the level up to which messages go to standard error: 0 or "error", 1 or "warning", 2 or "info", 3 or
 * "debug"; anything else that is not empty: 2. -1 if unset or empty. */
int qn_environment_log(void);

#endif
