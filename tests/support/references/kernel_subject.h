/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_subject.h: what a shared object built from kernel_subject.c offers to t010-kernel-primitives.c.
 * Types are named as in kernel.h. */
#ifndef QUERN_TESTS_KERNEL_SUBJECT_H
#define QUERN_TESTS_KERNEL_SUBJECT_H

typedef struct subject_loop {
  const char *op, *a, *b, *c, *y; /* q_<op>_... ; element types of the operands ("": none) and of the result */
  void (*run)(const void *a, const void *b, const void *c, void *y, __INT64_TYPE__ n);
  int line; /* of kernel_subject.def, for the compiler's remarks; 0: none */
} subject_loop;

typedef struct subject {
  const subject_loop *loops;
  __INT64_TYPE__ n_loops;
  int (*selftest)(void);
  void (*stream)(const char *src, char *dst, __INT64_TYPE__ bytes);
  void (*transpose[4])(const char *src, __INT64_TYPE__ src_stride, char *dst, __INT64_TYPE__ dst_stride, __INT64_TYPE__ n0,
                       __INT64_TYPE__ n1); /* of 1, 2, 4, 8 bytes */
} subject;

extern const subject kernel_subject;

#endif
