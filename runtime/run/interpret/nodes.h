/* SPDX-License-Identifier: Apache-2.0
 *
 * nodes.h: the values of an expression as a flat list of nodes, for the interpreter: operands, parameters, constants, and steps,
 * one kernel each. The op of a spec is split into primitives by the generator. Knows no registers. */
#ifndef QN_NODES_H
#define QN_NODES_H

#include "core/op/params.h"
#include "lang/parse/expression.h"
#include "lang/typing/values.h"
#include "toolchain/generator.h"

typedef enum qn_node_kind { QN_NODE_INPUT, QN_NODE_SLOT, QN_NODE_CONSTANT, QN_NODE_STEP, QN_NODE_RESULT } qn_node_kind;

typedef struct qn_node {
  uint8_t kind, type; /* qn_dtype */
  uint8_t uniform;    /* one value for all elements */
  uint8_t keeps_bits; /* a copy, or what a reduction or a scan gave: it may be a NaN that is not canonical */
  uint8_t heavy;
  int32_t index;                /* INPUT: its index; SLOT: its word of qn_params; CONSTANT: its word in the pool */
  const qn_variant *variants;   /* STEP: the kernels to choose from, the all-contiguous one first */
  int32_t n_variants;
  int32_t first_arg, n_args, n_params; /* nodes: the arguments, then the op's parameters */
  int32_t n_more;               /* STEP: further results; as many RESULT nodes follow it */
  int32_t last_use;             /* the last node that reads it */
  int32_t table_items;          /* CONSTANT: the number of items, if it is a table */
} qn_node;

typedef struct qn_nodes {
  qn_node *nodes; /* arguments come before their users */
  int32_t n_nodes, room_nodes;
  int32_t *args;
  int32_t n_args, room_args;
  uint64_t *pool; /* of constants; the first word is 0 */
  int32_t n_pool, room_pool;
  int32_t out[QN_MAX_OPERANDS];  /* the node of each output */
  uint32_t signs; /* bit k: a step looks at the sign of a NaN of input k */
  int32_t n_slots;
  qn_slot slots[QN_MAX_SLOTS]; /* by parameter, then dtype */
  int failed;                    /* out of memory; then the lists are as they were */
} qn_nodes;

/* `all` must be zeroed before, and freed on failure too. Errors: LIMIT (too many slots), MEMORY, and the generator's. */
quern_status qn_nodes_make(qn_nodes *all, const qn_expression *expression, const qn_typed *typed, qn_generator *generator);
void qn_nodes_free(qn_nodes *all);

/* Adds bytes to the pool, 8 bytes aligned, and gives their first word; or `failed`. */
int32_t qn_nodes_add_constant(qn_nodes *all, const void *bytes, size_t size);

/* Makes room for `more` items in a list of n, and returns the list. Out of memory: returns it unchanged, and sets *failed. */
void *qn_nodes_reserve(void *list, int32_t n, int32_t more, int32_t *room, size_t size, int *failed);

#endif
