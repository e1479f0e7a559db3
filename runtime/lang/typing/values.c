/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c: see values.h. */
#include "lang/typing/values.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

static uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

static uint32_t hash_of(const qn_value *value, const int32_t *args) {
  const uint32_t kinds = (uint32_t)value->kind << 24 | (uint32_t)value->type << 16 | (uint32_t)value->dtype << 8 |
                         value->kernel_dtype;
  uint64_t hash = mixed((uint64_t)kinds << 32 | (uint32_t)value->index, value->bits);
  hash = mixed(hash, (uintptr_t)value->op ^ (uintptr_t)value->primitive ^ (uintptr_t)value->kernel ^ (uintptr_t)value->reducer ^ value->inputs);
  for (int32_t k = 0; k < value->n_args + value->n_params; k++) hash = mixed(hash, (uint32_t)args[k]);
  return (uint32_t)hash;
}

static int is_same(const qn_values *all, const qn_value *a, const qn_value *b, const int32_t *b_args) {
  return a->kind == b->kind && a->type == b->type && a->dtype == b->dtype && a->kernel_dtype == b->kernel_dtype &&
         a->takes_none == b->takes_none && a->index == b->index && a->bits == b->bits && a->op == b->op && a->primitive == b->primitive &&
         a->kernel == b->kernel && a->reducer == b->reducer && a->inputs == b->inputs && a->elements == b->elements &&
         a->n_args == b->n_args && a->n_params == b->n_params &&
         (a->n_args + a->n_params == 0 ||
          memcmp(all->args + a->first_arg, b_args, (size_t)(a->n_args + a->n_params) * sizeof *b_args) == 0);
}

/* The hash table's entry of the value: its own, or the free one for it. */
static uint16_t *entry_of(const qn_values *all, const qn_value *like, const int32_t *args) {
  for (uint32_t at = hash_of(like, args);; at++) {
    uint16_t *entry = &all->table[at & all->mask];
    if (!*entry || is_same(all, &all->values[*entry - 1], like, args)) return entry;
  }
}

/* Doubles the room for values; the hash table has four times as many entries. 0: out of memory. */
static int grow_values(qn_values *all) {
  const int32_t room = all->room_values ? all->room_values * 2 : FIRST_ROOM;
  const uint32_t n_entries = (uint32_t)room * 4;
  uint16_t *table = calloc(n_entries, sizeof *table);
  qn_value *values = table ? realloc(all->values, (size_t)room * sizeof *values) : NULL;
  if (!values) {
    free(table);
    return 0;
  }
  free(all->table);
  all->table = table;
  all->mask = n_entries - 1;
  all->values = values;
  all->room_values = room;
  for (int32_t i = 0; i < all->n_values; i++) *entry_of(all, &values[i], all->args + values[i].first_arg) = (uint16_t)(i + 1);
  return 1;
}

static int reserve_args(qn_values *all, int32_t n) {
  if (all->args && all->n_args + n <= all->room_args) return 1;
  int32_t room = all->room_args ? all->room_args * 2 : 2 * FIRST_ROOM;
  while (room < all->n_args + n) room *= 2;
  int32_t *args = realloc(all->args, (size_t)room * sizeof *args);
  if (!args) return 0;
  all->args = args;
  all->room_args = room;
  return 1;
}

int32_t qn_values_add(qn_values *all, const qn_value *like, const int32_t *args) {
  const int32_t n = like->n_args + like->n_params;
  if (!reserve_args(all, n) || (all->n_values == all->room_values && !grow_values(all))) return -1;
  uint16_t *entry = entry_of(all, like, args);
  if (*entry) return *entry - 1;
  all->exceeded = all->n_values == QN_MAX_VALUES;
  if (all->exceeded) return -1;
  qn_value *value = &all->values[all->n_values];
  *value = *like;
  value->first_arg = all->n_args;
  if (n) memcpy(all->args + all->n_args, args, (size_t)n * sizeof *args);
  all->n_args += n;
  *entry = (uint16_t)++all->n_values;
  return all->n_values - 1;
}

qn_typed *qn_values_keep(const qn_values *all, int32_t n_out, const int32_t *out) {
  /* First marks the needed values, from the last to the first; then counts and renumbers them. */
  int32_t *number = calloc((size_t)all->n_values + 1, sizeof *number), n_values = 0, n_args = 0;
  if (!number) return NULL;
  for (int32_t k = 0; k < n_out; k++) number[out[k]] = 1;
  for (int32_t i = all->n_values - 1; i >= 0; i--) {
    const qn_value *value = &all->values[i];
    if (value->kind == QN_VALUE_INPUT || value->kind == QN_VALUE_PARAM) number[i] = 1;
    if (!number[i]) continue;
    n_values++;
    n_args += value->n_args + value->n_params;
    for (int32_t k = 0; k < value->n_args + value->n_params; k++) number[all->args[value->first_arg + k]] = 1;
  }
  qn_typed *typed = malloc(sizeof *typed + (size_t)n_values * sizeof(qn_value) + (size_t)n_args * sizeof(int32_t));
  if (typed) {
    *typed = (qn_typed){.n_out = n_out, .values = (qn_value *)(typed + 1)};
    typed->args = (int32_t *)(typed->values + n_values);
    for (int32_t i = 0; i < all->n_values; i++) {
      if (!number[i]) continue;
      qn_value *value = &typed->values[typed->n_values];
      *value = all->values[i];
      value->first_arg = typed->n_args;
      for (int32_t k = 0; k < value->n_args + value->n_params; k++)
        typed->args[typed->n_args++] = number[all->args[all->values[i].first_arg + k]];
      number[i] = typed->n_values++;
    }
    for (int32_t k = 0; k < n_out; k++) typed->out[k] = number[out[k]];
  }
  free(number);
  return typed;
}

void qn_values_free(qn_values *all) {
  free(all->values);
  free(all->args);
  free(all->table);
}
