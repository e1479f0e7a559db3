/* SPDX-License-Identifier: Apache-2.0
 *
 * short_rows.h: the launch of the CUDA kernel in which a thread has a row: for many rows of a few elements. What rows.h is for other rows;
 * results are the same. */
#ifndef QN_SHORT_ROWS_H
#define QN_SHORT_ROWS_H

#include "core/simt/rows/row_share.h"

#define QN_SHORT_RANK 2 /* of these kernels: the elements of a row, and the rows */
#define QN_SHORT_ELEMENTS 64 /* the most of a row */
#define QN_SHORT_STATES 16 /* the most bytes of a stage's states, of which a thread has 16. ORDER MOST_STATES of short_rows.lua */

/* The fields of a kernel's arguments behind the addresses. ORDER arguments_text of gen/targets/cuda/short_rows.lua */
enum {
  QN_SHORT_ITEMS, QN_SHORT_ROWS, QN_SHORT_FLAGS, QN_SHORT_JOINED, QN_SHORT_TILE_BITS, QN_SHORT_DIVISOR,
  QN_SHORT_FIELDS = QN_SHORT_DIVISOR + 2
};

/* Whether such a kernel can run a nest; and where it is worthwhile, for a program of which a stage has states of so many bytes. */
int qn_short_rows_fit(const qn_nest *nest, const uint8_t *sizes, int64_t count);
int qn_short_rows_wanted(const qn_nest *nest, const uint8_t *sizes, int64_t count, int32_t state_bytes);

/* The most bytes of states of a stage. */
int32_t qn_short_rows_states(const qn_row_program *program);

/* As qn_rows_pack. */
void qn_short_rows_pack(const qn_nest *nest, const uint8_t *sizes, uint64_t flags, const qn_launch_form *form, int32_t n_params,
                        qn_launch *launch);

/* Gives a tile 1 << bits rows. Sets the items and the bytes of shared memory. */
void qn_short_rows_set_tile(const uint8_t *sizes, int32_t bits, qn_launch *launch);

#endif
