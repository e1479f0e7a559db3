/* SPDX-License-Identifier: Apache-2.0
 *
 * call_state.h: the state of one call and the steps that call.c, which makes it, and call_facts.c, which only describes it, share.
 * A step that gives an int: -1: an exception. */
#ifndef QUERN_PYTHON_CALL_STATE_H
#define QUERN_PYTHON_CALL_STATE_H

#include "call/arguments.h"
#include "operand/call_operand.h"

/* The number of operands and shapes with room on the stack; more are on the heap. Frames must be small: producers may call
 * ops recursively, up to Python's limit of 1000 levels, on a stack of 8 MiB. */
#define ROOM_OPERANDS 4
#define ROOM_SHAPES 2

typedef struct call {
  op_object *op;
  const quern_op_info *info;
  arguments *given;
  int32_t n_taken;     /* operands taken so far */
  const operand *like; /* the first input that is no number; NULL: there is none */
  quern_call how;
  DLTensor *tensors[OP_MAX_OPERANDS]; /* as operands */
  uint64_t out_flags[OP_MAX_OPERANDS];
  operand *operands;                  /* inputs, then outputs */
  operand room[ROOM_OPERANDS];
} call;

static inline int32_t n_operands(const call *call) { return call->info->n_in + call->info->n_out; }

/* Whether operand k is an output that is to be made. */
static inline int is_made(const call *call, int32_t k) {
  return k >= call->info->n_in && !call->given->out[k - call->info->n_in];
}

/* `room`, if n fits, or a new array (PyMem_Free); NULL: MemoryError. */
void *call_make_room(void *room, int32_t room_for, int32_t n, size_t size);

/* After a call_begin that has succeeded comes call_end. */
int call_begin(call *call, op_object *op, arguments *given);
void call_end(call *call);

/* Takes all operands; then reads them: numbers, axes, devices' streams. */
int call_take(call *call);
int call_read(call *call);

/* Before the GIL is released: holds all borrowed tensors, and reads them from their holders. */
int call_hold(call *call);

/* The shapes of all outputs. Dtypes that are the caller's choice come from the outputs given, or from dtype. */
int call_find_shapes(call *call, quern_shape *shapes);

/* Whether a reduction has dtype=, so that its inputs are cast before; casts them. is_imagined: to tensors without memory. */
int call_wants_cast(const call *call);
int call_cast_inputs(call *call, int is_imagined);

#endif
