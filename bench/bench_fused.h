/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_fused.h: expressions at run time: how fast they are, and how soon. */
#ifndef BENCH_FUSED_H
#define BENCH_FUSED_H

/* All cases that are wanted: compiled, interpreted, and hand-written loops over the same bytes. */
void fused_cases(void);

/* What one process is for; `start`: when main began. They return what main does. */
int fused_first(double start);
int fused_compile(double start);
int fused_warm(double start, const char *cache_dir);
int fused_memory(void);

#endif
