/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_fused.h: times of expressions at run time, and times to their first results. */
#ifndef BENCH_FUSED_H
#define BENCH_FUSED_H

/* Times all selected cases: compiled, interpreted, and hand-written loops over the same bytes. */
void fused_cases(void);

/* Cases that need a process of their own; `start`: the time when main began. They return main's exit status. */
int fused_first(double start);
int fused_compile(double start);
int fused_warm(double start, const char *cache_dir);
int fused_memory(void);

#endif
