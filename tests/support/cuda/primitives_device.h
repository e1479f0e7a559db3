/* SPDX-License-Identifier: Apache-2.0
 *
 * primitives_device.h: the kernels of primitives.cu on a device, as t700-cuda-primitives.c runs those that are built for the
 * CPU. */
#ifndef QUERN_TESTS_CUDA_PRIMITIVES_DEVICE_H
#define QUERN_TESTS_CUDA_PRIMITIVES_DEVICE_H

#include "kernel_subject.h"

/* The loops, each of which copies, runs and copies back; NULL and why there is no device. folder: of sm_NN.cubin. */
const subject *device_subject(const char *folder, const char **why);

/* Another kernel of that file, with four arguments of 8 bytes: a, b, c, y, n; or, is_copy: vectors of `bytes`, a, c, y, n. */
void device_run_named(const char *name, int is_copy, int bytes, const void *a, const void *b, const void *c, void *y,
                      long long n);

#endif
