/* SPDX-License-Identifier: Apache-2.0
 *
 * device_arrays.h: arrays on a CUDA device, as the program wants them: memory, copies, a stream and marks of time on it. The
 * driver is opened as the library opens it (QUERN_CUDA_PATH, the loader, /usr/local/cuda/lib64). Runs no kernel. Functions print
 * their own errors; they return 1, or 0 after an error. */
#ifndef QUERN_PROGRAM_DEVICE_ARRAYS_H
#define QUERN_PROGRAM_DEVICE_ARRAYS_H

#include "ndarray.h"

typedef struct device device;

/* "cpu", "cuda", "cuda:1". 0: it is none of these; nothing is said. */
int device_parse(const char *word, DLDevice *which);

/* The device, its primary context being this thread's from then on. NULL: said already. */
device *device_open(int32_t ordinal);

/* Gives back its memory and the rest. NULL is allowed. */
void device_close(device *device);

void *device_stream(const device *device);

/* Takes memory on the device for the array and makes that its tensor's. */
int device_take(device *device, ndarray *array);

/* Copies in the order of the stream, from the host's memory of an array to the device's and back. */
int device_send(device *device, ndarray *array);
int device_fetch(device *device, ndarray *array);

/* Marks 0 ... DEVICE_MARKS - 1, recorded on the stream; waits until the last one recorded has passed; the milliseconds
 * between two that have. */
#define DEVICE_MARKS 33
int device_mark(device *device, int mark);
int device_wait(device *device, int mark);
int device_ms(device *device, int from, int to, double *ms);

#endif
