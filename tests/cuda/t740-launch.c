/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t740: from a nest to a launch: on random nests, the packed arguments are read as the CUDA kernels read them (templates
 * elementwise.cu.in, transpose.cu.in, kernel_items.h), and every element must be met once, at the right place in every operand;
 * picks from tables built ahead against what can run at all; grids; the layout of arguments; division. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/simt/launch.h"
#include "tap.h"

typedef uint64_t u64;
typedef int64_t i64;
__extension__ typedef unsigned __int128 u128;

enum { C = QN_CLASS_CONTIGUOUS, B = QN_CLASS_BROADCAST, S = QN_CLASS_STRIDED, T = QN_CLASS_TILED };
enum { MAX_ELEMENTS = 8192 };
#define POISON 0xe1e2e3e4e5e6e7e8u

static rng r;
static int below(int n) { return (int)rng_below(&r, (u64)n); }

/* ---- Random problems ---- */

typedef struct problem {
  qn_nest nest;
  uint8_t sizes[QN_MAX_OPERANDS];
  int32_t n_out, n_in;
  uint32_t values;
} problem;

/* Strides of one operand: its dimensions in some order, with gaps, some backwards, those of inputs also standing still. */
static void lay_out(problem *p, int32_t k) {
  qn_nest *nest = &p->nest;
  const int is_output = k >= p->n_in, has_gaps = below(3) == 0, is_signed = below(3) == 0, is_still = !is_output && below(3) == 0;
  int32_t order[QUERN_MAX_NDIM];
  for (int32_t d = 0; d < nest->rank; d++) order[d] = d;
  if (below(is_output ? 6 : 2) == 0) {
    for (int32_t d = nest->rank - 1; d > 0; d--) {
      const int32_t e = below(d + 1), was = order[d];
      order[d] = order[e], order[e] = was;
    }
  }
  i64 next = p->sizes[k] ? p->sizes[k] : 1; /* indices: one from element to element of a row, or many */
  for (int32_t j = 0; j < nest->rank; j++) {
    const int32_t d = order[j];
    if (has_gaps && below(2)) next += p->sizes[k] * (1 + below(3));
    nest->stride[k][d] = is_signed && below(2) ? -next : next;
    if (is_still && p->sizes[k] && below(2)) nest->stride[k][d] = 0;
    else if (next < ((i64)1 << 58) / nest->n[d]) next *= nest->n[d]; /* a layout beyond may meet itself: it is not walked over */
  }
}

static void make_operands(problem *p, int32_t n_operands) {
  qn_nest *nest = &p->nest;
  const uint8_t size = (uint8_t)(1 << below(4));
  const int is_mixed = below(2), has_indices = n_operands == 2 && below(4) == 0;
  nest->n_operands = n_operands;
  p->n_out = 1 + (n_operands > 3 && below(4) == 0);
  p->n_in = n_operands - p->n_out;
  p->values = 0;
  for (int32_t k = 0; k < n_operands; k++) {
    p->sizes[k] = has_indices && k == 0 ? 0 : is_mixed ? (uint8_t)(1 << below(4)) : size;
    lay_out(p, k);
    nest->ref[k] = (qn_ref){NULL, 0};
    if (k >= p->n_in || !p->sizes[k] || below(8)) continue;
    p->values |= (uint32_t)1 << k;
    for (int32_t d = 0; d < nest->rank; d++) nest->stride[k][d] = 0;
  }
}

static int32_t random_count(void) { return below(12) == 0 ? 1 + below(32) : 1 + below(5); }

static void make_problem(problem *p) {
  qn_nest *nest = &p->nest;
  memset(p, 0xee, sizeof *p);
  nest->rank = below(10) == 0 ? 9 + below(5) : below(below(2) ? 4 : 9);
  nest->n_elements = 1;
  const int most = 2 + below(39), is_square = below(4) == 0; /* two long dimensions: tiles */
  const i64 limit = below(4) ? 2048 : MAX_ELEMENTS;
  if (is_square) nest->rank = 2 + below(3);
  for (int32_t d = 0; d < nest->rank; d++) {
    i64 n = is_square && d < 2 ? 14 + below(40) : 2 + below(most);
    const i64 rest = limit >> (nest->rank - 1 - d);
    while (n > 2 && nest->n_elements * n > rest) n--;
    nest->n[d] = n;
    nest->n_elements *= n;
  }
  make_operands(p, nest->rank > 12 && below(2) ? 30 + below(3) : random_count());
}

/* Extents up to 2^40, or more dimensions than a kernel has room for. */
static void make_huge(problem *p) {
  qn_nest *nest = &p->nest;
  memset(p, 0xee, sizeof *p);
  const int is_deep = below(3) == 0;
  nest->rank = is_deep ? 12 + below(21) : 1 + below(5);
  nest->n_elements = 1;
  int bits = 62;
  for (int32_t d = 0; d < nest->rank; d++) {
    const int left = bits - (nest->rank - 1 - d); /* a bit for each of the others */
    int b = is_deep ? 1 : 1 + below(left < 40 ? left : 40);
    if (b > left) b = left;
    if (!is_deep && below(3) == 0 && left >= 31) b = 28 + below(4);
    nest->n[d] = b == 1 ? 2 : ((i64)1 << b) - below(3);
    nest->n_elements *= nest->n[d];
    bits -= b;
  }
  make_operands(p, is_deep && below(2) ? 20 + below(13) : random_count());
}

static const char *text_of(const problem *p, const qn_launch_form *form) {
  static char text[4096];
  size_t at = (size_t)snprintf(text, sizeof text, "rank %d, %s, classes ", form->rank, form->is_wide ? "wide" : "narrow");
  for (int k = 0; k < p->nest.n_operands; k++) text[at++] = form->classes[k] < 4 ? "cbst"[form->classes[k]] : '?';
  at += (size_t)snprintf(text + at, sizeof text - at, ", values %x, extents", p->values);
  for (int d = 0; d < p->nest.rank; d++) at += (size_t)snprintf(text + at, sizeof text - at, " %" PRId64, p->nest.n[d]);
  for (int k = 0; k < p->nest.n_operands && k < 4; k++) {
    at += (size_t)snprintf(text + at, sizeof text - at, ", %d bytes:", p->sizes[k]);
    for (int d = 0; d < p->nest.rank; d++) at += (size_t)snprintf(text + at, sizeof text - at, " %" PRId64, p->nest.stride[k][d]);
  }
  return text;
}

/* ---- What a kernel reads ---- */

typedef struct view {
  const qn_launch *launch;
  const problem *p;
  const u64 *ptr;
  u64 slots, row_items, flags, rank;
  const u64 *n, *stride, *divide;
  int32_t room;
  int is_wide, is_bad; /* is_bad: a number does not fit */
} view;

static view view_of(const problem *p, const qn_launch *launch, const u64 *args) {
  view a = {.launch = launch, .p = p, .ptr = args, .is_wide = launch->form.is_wide};
  const int32_t count = p->nest.n_operands, any = 384 / count < 32 ? 384 / count : 32;
  a.room = launch->form.rank ? launch->form.rank : any;
  args += count;
  a.slots = args[0], a.row_items = args[1], a.flags = args[2], a.rank = args[3];
  a.n = args + 4;
  a.stride = a.n + a.room;
  a.divide = a.stride + count * a.room;
  return a;
}

static u64 wrap(const view *a, u64 x) { return a->is_wide ? x : (uint32_t)x; }

static u64 divide(int is_wide, u64 x, const u64 *by) {
  if (is_wide) return (u64)((u128)(2 * x) * by[0] >> 64) >> by[1];
  return (uint32_t)((u64)(uint32_t)(2 * x) * (uint32_t)by[0] >> 32) >> by[1];
}

static i64 offset(view *a, u64 at, u64 stride) {
  if (a->is_wide) return (i64)(at * stride);
  if (at > INT32_MAX || (i64)stride != (int32_t)(i64)stride) a->is_bad = 1;
  return (i64)(int32_t)(uint32_t)at * (int32_t)(uint32_t)stride;
}

static u64 stride_of(const view *a, int32_t k, int32_t d) { return a->stride[k * a->room + d]; }

/* From a row's number to its places along the dimensions from `first` on; rest: what is left, nothing. */
static void places(view *a, u64 row, int32_t first, u64 at[]) {
  const int32_t rank = a->launch->form.rank;
  if (rank == 1) return;
  if (rank == 2 || (rank == 3 && first == 1)) { /* the last dimension takes what is left */
    for (int32_t d = first; d < rank; d++) {
      const u64 next = d == rank - 1 ? 0 : divide(a->is_wide, row, a->divide + 2 * d);
      at[d] = wrap(a, row - next * a->n[d]);
      row = next;
    }
    return;
  }
  for (int32_t d = first; d < (int32_t)a->rank; d++) {
    const u64 next = divide(a->is_wide, row, a->divide + 2 * d);
    at[d] = wrap(a, row - next * a->n[d]);
    row = next;
  }
}

typedef void met(void *arg, const u64 *addresses);

/* Elements of one slot of a kernel of rows or elements. at: places along the outer dimensions, for the caller. */
static void slot_of_rows(view *a, u64 slot, u64 at[], met *meet, void *arg) {
  const problem *p = a->p;
  const uint8_t *classes = a->launch->form.classes;
  const u64 V = a->launch->item_elements, n0 = a->n[0];
  u64 rows[QN_MAX_OPERANDS], addresses[QN_MAX_OPERANDS], i = slot;
  if (a->launch->form.rank != 1) {
    const u64 row = divide(a->is_wide, slot, a->divide);
    i = wrap(a, slot - row * a->row_items);
    places(a, row, 1, at);
  }
  at[0] = i;
  for (int32_t k = 0; k < p->nest.n_operands; k++) {
    rows[k] = a->ptr[k];
    for (int32_t d = 1; d < (int32_t)a->rank; d++) rows[k] += (u64)offset(a, at[d], stride_of(a, k, d));
  }
  if (!meet) return;
  const u64 phase = rows[p->n_in] / p->sizes[p->n_in] % V, start = wrap(a, i * V - phase);
  for (u64 v = 0; v < V; v++) {
    const u64 here = wrap(a, start + v);
    if (here >= n0) continue;
    for (int32_t k = 0; k < p->nest.n_operands; k++) {
      addresses[k] = rows[k];
      if (classes[k] == C) addresses[k] += here * p->sizes[k];
      if (classes[k] == S || !p->sizes[k]) addresses[k] += (u64)offset(a, here, stride_of(a, k, 0));
    }
    meet(arg, addresses);
  }
}

/* Of a tile along dimension 1: 64 elements where those of the tiled inputs are 16 bytes together at most. */
static u64 side_of(const view *a) {
  int32_t bytes = 0;
  for (int32_t k = 0; k < a->p->nest.n_operands; k++) bytes += a->launch->form.classes[k] == T ? a->p->sizes[k] : 0;
  return bytes <= 16 ? 64 : 32;
}

static void slot_of_tiles(view *a, u64 slot, u64 at[], met *meet, void *arg) {
  const problem *p = a->p;
  const uint8_t *classes = a->launch->form.classes;
  const u64 n0 = a->n[0], n1 = a->n[1], rows = divide(a->is_wide, slot, a->divide);
  const u64 side = side_of(a), columns = (n1 + side - 1) / side;
  u64 base[QN_MAX_OPERANDS], addresses[QN_MAX_OPERANDS];
  at[0] = slot - rows * a->row_items, at[1] = rows;
  if (a->launch->form.rank != 2) {
    const u64 rest = divide(a->is_wide, rows, a->divide + 2);
    at[1] = rows - rest * columns;
    places(a, rest, 2, at);
  }
  for (int32_t k = 0; k < p->nest.n_operands; k++) {
    base[k] = a->ptr[k];
    for (int32_t d = 2; d < (int32_t)a->rank; d++) base[k] += (u64)offset(a, at[d], stride_of(a, k, d));
  }
  for (u64 e = 0; e < 32 * side && meet; e++) {
    const u64 i = at[0] * 32 + e % 32, j = at[1] * side + e / 32;
    if (i >= n0 || j >= n1) continue;
    for (int32_t k = 0; k < p->nest.n_operands; k++) {
      const u64 step0 = classes[k] == C ? p->sizes[k] : classes[k] == B ? 0 : stride_of(a, k, 0);
      const u64 step1 = classes[k] == T ? p->sizes[k] : stride_of(a, k, 1);
      addresses[k] = base[k] + (u64)offset(a, i, step0) + (u64)offset(a, j, step1);
    }
    meet(arg, addresses);
  }
}

static void visit(view *a, u64 slot, u64 at[], met *meet, void *arg) {
  if (a->launch->is_tiled) slot_of_tiles(a, slot, at, meet, arg);
  else slot_of_rows(a, slot, at, meet, arg);
}

/* ---- Every element once ---- */

typedef struct element {
  i64 key; /* offset in output 0, which no two share */
  int32_t number, n_met;
} element;

typedef struct meeting {
  const problem *p;
  const u64 *first; /* addresses of element 0 */
  element *elements;
  const char *wrong;
} meeting;

static int by_key(const void *a, const void *b) {
  const i64 x = ((const element *)a)->key, y = ((const element *)b)->key;
  return (x > y) - (x < y);
}

static i64 offset_in(const problem *p, int32_t k, i64 number) {
  i64 sum = 0;
  for (int32_t d = 0; d < p->nest.rank; d++) {
    sum += number % p->nest.n[d] * p->nest.stride[k][d];
    number /= p->nest.n[d];
  }
  return sum;
}

static void meet_element(void *arg, const u64 *addresses) {
  meeting *m = arg;
  const problem *p = m->p;
  const element key = {.key = (i64)(addresses[p->n_in] - m->first[p->n_in])};
  element *e = bsearch(&key, m->elements, (size_t)p->nest.n_elements, sizeof *e, by_key);
  if (!e) {
    m->wrong = "an element of the output that there is not";
    return;
  }
  e->n_met++;
  for (int32_t k = 0; k < p->nest.n_operands; k++)
    if ((i64)(addresses[k] - m->first[k]) != offset_in(p, k, e->number)) m->wrong = "an operand at another place";
}

/* What a launch and its repeats do, with addresses of any alignment. */
static const char *run_all(const problem *p, const qn_launch *launch) {
  static element elements[MAX_ELEMENTS];
  u64 first[QN_MAX_OPERANDS], args[QN_LAUNCH_ARGS], at[QUERN_MAX_NDIM];
  meeting m = {.p = p, .first = first, .elements = elements};
  for (i64 e = 0; e < p->nest.n_elements; e++)
    elements[e] = (element){.key = offset_in(p, p->n_in, e), .number = (int32_t)e};
  qsort(elements, (size_t)p->nest.n_elements, sizeof *elements, by_key);
  for (int32_t k = 0; k < p->nest.n_operands; k++)
    first[k] = ((u64)1 << 40) + (below(4) ? p->sizes[k] * (u64)below(17) : (u64)below(33));
  memcpy(args, launch->args, sizeof args);
  u64 n_repeats = 1;
  for (int32_t j = 0; j < launch->repeat_rank; j++) n_repeats *= (u64)launch->repeat_n[j];
  for (u64 repeat = 0; repeat < n_repeats; repeat++) {
    for (int32_t k = 0; k < p->nest.n_operands; k++) {
      u64 rest = repeat;
      args[k] = first[k];
      for (int32_t j = 0; j < launch->repeat_rank; j++) {
        args[k] += rest % (u64)launch->repeat_n[j] * (u64)launch->repeat_stride[k][j];
        rest /= (u64)launch->repeat_n[j];
      }
    }
    view a = view_of(p, launch, args);
    for (u64 slot = 0; slot < a.slots; slot++) visit(&a, slot, at, meet_element, &m);
    if (a.is_bad) return "a place or a stride beyond 32 bits";
  }
  if (m.wrong) return m.wrong;
  for (i64 e = 0; e < p->nest.n_elements; e++)
    if (elements[e].n_met != 1) return elements[e].n_met ? "an element met twice" : "an element not met";
  return NULL;
}

/* ---- Numbers that hold for any size ---- */

/* 1: dimension d of the kernel (or repeat) is dimension e of the nest. */
static int is_same_dimension(const view *a, int32_t d, int32_t e) {
  const qn_nest *nest = &a->p->nest;
  const qn_launch *l = a->launch;
  const int32_t repeat = d - (int32_t)a->rank;
  if ((repeat < 0 ? (i64)a->n[d] : l->repeat_n[repeat]) != nest->n[e]) return 0;
  for (int32_t k = 0; k < nest->n_operands; k++)
    if ((repeat < 0 ? (i64)stride_of(a, k, d) : l->repeat_stride[k][repeat]) != nest->stride[k][e]) return 0;
  return 1;
}

/* The kernel's dimensions and the repeats are the nest's, each once, 0 in its place; besides, dimensions of extent 1. */
static const char *check_dimensions(const view *a) {
  const qn_nest *nest = &a->p->nest;
  uint64_t used = 0;
  int32_t n_used = 0;
  for (int32_t d = 0; d < (int32_t)a->rank + a->launch->repeat_rank; d++) {
    int32_t e = 0;
    if (d < (int32_t)a->rank && a->n[d] == 1) continue;
    while (e < nest->rank && ((used >> e & 1) || !is_same_dimension(a, d, e))) e++;
    if (e == nest->rank || (d == 0) != (e == 0)) return "dimensions that are not the nest's";
    used |= (uint64_t)1 << e;
    n_used++;
  }
  return n_used == nest->rank ? NULL : "dimensions are missing";
}

/* Some slots, by division as it is taught. */
static const char *check_slots(view *a) {
  u64 per[QUERN_MAX_NDIM], total = 1, at[QUERN_MAX_NDIM];
  for (int32_t d = 0; d < (int32_t)a->rank; d++) {
    per[d] = d == 0 ? a->row_items : a->launch->is_tiled && d == 1 ? (a->n[1] + side_of(a) - 1) / side_of(a) : a->n[d];
    total *= per[d];
  }
  const u64 V = a->launch->item_elements;
  if (total != a->slots || total != a->launch->n_items) return "the slots do not add up";
  if (a->launch->is_tiled ? a->row_items != (a->n[0] + 31) / 32 : a->row_items != (a->n[0] + V - 1 + V - 1) / V)
    return "slots of a row";
  for (int i = 0; i < 40; i++) {
    const u64 slot = i < 3 ? total - 1 - (u64)i % total : i < 6 ? (u64)i % total : rng_below(&r, total);
    u64 rest = slot;
    visit(a, slot, at, NULL, NULL);
    for (int32_t d = 0; d < (int32_t)a->rank; rest /= per[d], d++)
      if (at[d] != rest % per[d]) return "a slot at another place";
    if (a->is_bad) return "a place or a stride beyond 32 bits";
  }
  return NULL;
}

/* 1: 32 bits are enough. */
static int fits(const view *a) {
  int good = a->slots < (u64)1 << 31;
  for (int32_t d = 0; d < (int32_t)a->rank; d++) {
    good &= a->n[d] < (u64)1 << 31;
    for (int32_t k = 0; k < a->p->nest.n_operands; k++) {
      const i64 stride = (i64)stride_of(a, k, d);
      good &= stride >= INT32_MIN && stride <= INT32_MAX;
    }
  }
  return good;
}

/* Fields: where they are, which are written. */
static const char *check_fields(const view *a, int32_t n_params) {
  const qn_launch *l = a->launch;
  const int32_t count = a->p->nest.n_operands, at_params = count + 4 + a->room + count * a->room + 2 * a->room;
  if (l->at_params != at_params || l->n_args != at_params + n_params || l->n_args > QN_LAUNCH_ARGS) return "where parameters are";
  for (int32_t i = 0; i < QN_LAUNCH_ARGS; i++)
    if ((i < count || i >= at_params) && l->args[i] != POISON) return "a field written that is not its own";
  if (a->rank > (u64)a->room || a->rank < 1 || (l->form.rank && a->rank != l->form.rank)) return "the rank";
  i64 item = 0;
  for (int32_t k = a->p->n_in; k < count; k++) item += a->p->sizes[k];
  const int is_streamed = (u128)item * (u128)a->p->nest.n_elements >= (u128)32 << 20;
  if (a->flags != ((u64)a->p->values << 8 | (u64)is_streamed)) return "the flags";
  return NULL;
}

static const char *check_classes(const problem *p, const qn_launch *launch) {
  const qn_launch_form *form = &launch->form;
  int is_tiled = 0;
  for (int32_t k = 0; k < p->nest.n_operands; k++) {
    const uint8_t class = form->classes[k];
    if ((p->values >> k & 1) && class != B && class != S) return "a value that is neither b nor s";
    if (class == T && k >= p->n_in) return "an output that is tiled";
    if (p->nest.rank && class == C && p->nest.stride[k][0] != p->sizes[k]) return "c that is not contiguous";
    if (p->nest.rank && class == B && p->sizes[k] && p->nest.stride[k][0] != 0) return "b that moves";
    is_tiled |= class == T;
  }
  if (form->n_operands != p->nest.n_operands) return "operands";
  return is_tiled == launch->is_tiled ? NULL : "tiled or not";
}

/* ---- Grids ---- */

static const char *check_grid(const qn_launch *l) {
  static const uint32_t residents[] = {0, 1, 2, 7, 132, 1056, 1 << 20, UINT32_MAX};
  const uint32_t turn = l->is_tiled ? 1 : 1u << below(3), resident = residents[below(8)];
  uint32_t x, y;
  qn_launch_block(l, &x, &y);
  if (x != (l->is_tiled ? 32 : 256) || x * y != 256) return "a block";
  const u64 grid = qn_launch_grid(l, turn, resident), share = l->is_tiled ? 1 : (u64)256 * turn;
  const u64 blocks = l->n_items / share + (l->n_items % share != 0), most = resident ? resident : 1;
  if (grid == 0 || grid > INT32_MAX || grid > blocks || grid > most) return "a grid's size";
  if (!l->form.is_wide && grid * 256 * turn >= (u64)1 << 31) return "a grid's step";
  const u64 limit = l->form.is_wide ? INT32_MAX : INT32_MAX / (256 * turn), held = most < limit ? most : limit;
  const u64 waves = (blocks + grid - 1) / grid, least = (blocks + held - 1) / held;
  if (waves != least) return "a wave more than needed";
  if (waves > 1 && (blocks + grid - 2) / (grid - 1 ? grid - 1 : 1) == waves && grid > 1) return "a block more than needed";
  return NULL;
}

/* Which slots the threads of a grid come to, in a kernel's own words. */
static const char *check_coverage(const qn_launch *l) {
  static uint8_t met[MAX_ELEMENTS];
  const uint32_t turn = l->is_tiled ? 1 : 1u << below(3), grid = qn_launch_grid(l, turn, 1 + (uint32_t)below(9));
  const u64 threads = l->is_tiled ? 1 : 256;
  memset(met, 0, sizeof met);
  for (u64 block = 0; block < grid; block++)
    for (u64 t = 0; t < threads; t++)
      for (u64 at = block * threads * turn + t; at < l->n_items; at += grid * threads * turn)
        for (u64 u = 0; u < turn; u++)
          if (at + u * threads < l->n_items) met[at + u * threads]++;
  for (u64 slot = 0; slot < l->n_items; slot++)
    if (met[slot] != 1) return "a slot not met once";
  return NULL;
}

/* ---- Chosen forms ---- */

static int n_tiled, n_rows, n_elementwise, n_repeated, n_wide, n_narrow, n_values, n_indices;

static void poison(qn_launch *launch) {
  memset(launch, 0xee, sizeof *launch);
  for (int i = 0; i < QN_LAUNCH_ARGS; i++) launch->args[i] = POISON;
}

static const char *check_launch(const problem *p, const qn_launch_form *form, int is_small) {
  static qn_launch launch;
  const int32_t n_params = below(17);
  poison(&launch);
  qn_launch_pack(&p->nest, p->sizes, p->n_out, p->values, form, n_params, &launch);
  view a = view_of(p, &launch, launch.args);
  const char *wrong = check_fields(&a, n_params);
  if (!wrong) wrong = check_classes(p, &launch);
  if (!wrong) wrong = check_dimensions(&a);
  if (!wrong && !form->is_wide && !fits(&a)) wrong = "more than 32 bits hold";
  for (int32_t k = 0; k < p->nest.n_operands; k++) launch.args[k] = 0;
  if (!wrong) wrong = check_slots(&a);
  for (int i = 0; i < 4 && !wrong; i++) wrong = check_grid(&launch);
  if (!wrong && is_small) wrong = run_all(p, &launch);
  if (!wrong && is_small) wrong = check_coverage(&launch);
  n_tiled += launch.is_tiled, n_rows += !launch.is_tiled && launch.item_elements > 1, n_elementwise += launch.item_elements == 1;
  n_repeated += launch.repeat_rank > 0, n_wide += form->is_wide, n_narrow += !form->is_wide, n_values += p->values != 0;
  n_indices += !p->sizes[0];
  return wrong;
}

/* The rules of choose, again. */
static const char *check_choice(const problem *p, const qn_launch_form *form) {
  const qn_nest *nest = &p->nest;
  uint32_t widest = 1;
  int is_tiled = 0, is_strided = 0, tiled_items = 0;
  if (form->rank != (nest->rank > 3 ? 0 : nest->rank ? nest->rank : 1)) return "the rank";
  for (int32_t k = 0; k < nest->n_operands; k++) {
    is_tiled |= form->classes[k] == T, is_strided |= form->classes[k] == S;
    if (p->sizes[k] > widest) widest = p->sizes[k];
    if (form->classes[k] == T) tiled_items += p->sizes[k];
    if (((p->values >> k & 1) || !p->sizes[k]) && form->classes[k] != B) return "a value, or indices, not b";
  }
  if (tiled_items * (tiled_items <= 16 ? 32 * 68 : 32 * 33) > 48 * 1024) return "too much shared memory";
  if (is_tiled && (nest->n[0] < 16 || nest->n_elements < 1024)) return "small tiles";
  const int is_short = nest->rank > 1 && nest->n[0] < 4 * 16 / widest;
  if (!is_tiled && !is_strided && is_short) return "short rows";
  for (int32_t k = 0; k < nest->n_operands; k++) {
    const uint8_t c = form->classes[k];
    if (nest->rank && c == S && !is_short && nest->stride[k][0] == p->sizes[k]) return "a contiguous operand as a strided one";
    for (int32_t d = 1; d < nest->rank && k < p->n_in && !is_tiled && c == S && !is_short; d++) {
      int could = nest->stride[k][d] == p->sizes[k] && nest->n[0] >= 16 && nest->n[d] >= 16 && nest->n_elements >= 1024;
      for (int32_t o = p->n_in; o < nest->n_operands; o++) could &= nest->stride[o][0] == p->sizes[o];
      if (could) return "tiles were possible";
    }
  }
  return NULL;
}

static void test_choose(void) {
  static problem p;
  qn_launch_form form;
  rng_seed(&r, 1);
  group_begin("small nests: every element once");
  for (int i = 0; i < 6000; i++) {
    make_problem(&p);
    memset(&form, 0xee, sizeof form);
    qn_launch_choose(&p.nest, p.sizes, p.n_out, p.values, &form);
    const char *wrong = check_choice(&p, &form);
    if (!wrong && form.is_wide) wrong = "wide without need";
    form.is_wide = below(4) == 0;
    if (!wrong) wrong = check_launch(&p, &form, 1);
    group_count(1);
    if (wrong) group_fail("problem %d: %s: %s", i, wrong, text_of(&p, &form));
  }
  group_end();
  ok(n_tiled > 100 && n_rows > 100 && n_elementwise > 100 && n_repeated > 20 && n_wide > 100 && n_values > 100 && n_indices > 100,
     "there were tiles (%d), rows (%d), elements (%d), repeats (%d), wide ones (%d), values (%d), indices (%d)", n_tiled, n_rows,
     n_elementwise, n_repeated, n_wide, n_values, n_indices);
}

static void test_huge(void) {
  static problem p;
  static qn_launch launch;
  qn_launch_form form;
  rng_seed(&r, 2);
  n_wide = n_narrow = n_repeated = n_tiled = 0;
  group_begin("huge nests: some slots, and bounds");
  for (int i = 0; i < 6000; i++) {
    make_huge(&p);
    memset(&form, 0xee, sizeof form);
    qn_launch_choose(&p.nest, p.sizes, p.n_out, p.values, &form);
    const char *wrong = check_choice(&p, &form);
    if (!wrong) wrong = check_launch(&p, &form, 0);
    qn_launch_pack(&p.nest, p.sizes, p.n_out, p.values, &form, 0, &launch);
    const view a = view_of(&p, &launch, launch.args);
    if (!wrong && form.is_wide == fits(&a)) wrong = "wide without need, or not wide";
    group_count(1);
    if (wrong) group_fail("problem %d: %s: %s", i, wrong, text_of(&p, &form));
  }
  group_end();
  ok(n_wide > 100 && n_narrow > 100 && n_repeated > 100 && n_tiled > 100,
     "there were wide ones (%d), narrow ones (%d), repeats (%d), tiles (%d)", n_wide, n_narrow, n_repeated, n_tiled);
}

/* ---- Picks ---- */

enum { MAX_VARIANTS = 4000 };
static qn_cuda_variant table[MAX_VARIANTS], subset[MAX_VARIANTS];
static uint8_t class_pool[MAX_VARIANTS][4];
static const uint8_t dtypes_here[4] = {QN_F32, QN_F32, QN_F32, QN_F32}, dtypes_there[4] = {QN_F32, QN_F32, QN_F32, QN_F64};
static int n_table;

static void add(int rank, const char *classes, int is_wide) {
  const size_t count = strlen(classes);
  for (int other = 0; other < 2; other++) { /* for other dtypes, too */
    for (size_t k = 0; k < count; k++) class_pool[n_table][k] = (uint8_t)(strchr("cbst", classes[k]) - "cbst");
    table[n_table] = (qn_cuda_variant){.dtypes = other ? dtypes_there + 4 - count : dtypes_here, .classes = class_pool[n_table],
                                       .rank = (uint8_t)rank, .is_wide = (uint8_t)is_wide, .items_per_thread = 1};
    n_table++;
  }
}

/* As gen/targets/cuda/variants.lua has it for n inputs, 1 to 3, and an output. */
static void make_lean(int n) {
  static const char *const rows[4][8] = {{0}, {"cc"}, {"ccc", "bcc", "cbc"},
                                         {"cccc", "bccc", "cbcc", "ccbc", "bbcc", "bcbc", "cbbc"}};
  static const char *const turned[4][4] = {{0}, {"tc"}, {"ttc", "tcc", "ctc"}, {0}};
  static const char *const strided[4] = {"", "ss", "sss", "ssss"};
  n_table = 0;
  for (int i = 0; i < 8 && rows[n][i]; i++) add(1, rows[n][i], 0), add(1, rows[n][i], 1), add(2, rows[n][i], 0);
  for (int i = 0; i < 4 && turned[n][i]; i++) add(2, turned[n][i], 0);
  add(0, strided[n], 0), add(0, strided[n], 1);
}

static void make_full(int n) {
  n_table = 0;
  for (int code = 0; code < 1 << 2 * n; code++) {
    for (int last = 0; last < 3; last++) {
      char classes[5] = {0};
      for (int k = 0; k < n; k++) classes[k] = "cbst"[code >> 2 * k & 3];
      classes[n] = "cbs"[last];
      for (int rank = strchr(classes, 't') ? 2 : 1; rank < 5; rank++)
        for (int is_wide = 0; is_wide < 2; is_wide++) add(rank & 3, classes, is_wide);
    }
  }
}

/* Whether a kernel can run a nest, by its arguments: there is a dimension for its tiles, and its counts hold it. */
static int can_run(const problem *p, const qn_cuda_variant *v, qn_launch *launch) {
  const qn_nest *nest = &p->nest;
  const int32_t count = nest->n_operands;
  int is_tiled = 0, has_column = 0;
  if (memcmp(v->dtypes, dtypes_here, (size_t)count) || (v->rank && v->rank < nest->rank)) return 0;
  for (int32_t k = 0; k < count; k++) {
    const int is_value = p->values >> k & 1;
    const i64 step = nest->rank ? nest->stride[k][0] : v->classes[k] == C ? p->sizes[k] : 0;
    if (v->classes[k] == C && (is_value || step != p->sizes[k])) return 0;
    if (v->classes[k] == B && p->sizes[k] && step != 0) return 0;
    if (v->classes[k] == T && (is_value || k >= p->n_in)) return 0;
    is_tiled |= v->classes[k] == T;
  }
  for (int32_t d = 1; d < nest->rank && is_tiled && !has_column; d++) {
    has_column = 1;
    for (int32_t k = 0; k < count; k++) has_column &= v->classes[k] != T || nest->stride[k][d] == p->sizes[k];
  }
  if (is_tiled && !has_column) return 0;
  qn_launch_form form = {.rank = v->rank, .is_wide = 1, .n_operands = (uint8_t)count};
  memcpy(form.classes, v->classes, (size_t)count);
  qn_launch_pack(nest, p->sizes, p->n_out, p->values, &form, 0, launch);
  const view a = view_of(p, launch, launch->args);
  return v->is_wide || fits(&a);
}

static int count_class(const uint8_t *classes, int32_t n, uint8_t class) {
  int count = 0;
  for (int32_t k = 0; k < n; k++) count += classes[k] == class;
  return count;
}

/* What is surely better than what was picked. */
static const char *compare(const problem *p, const qn_cuda_variant *v, const qn_launch *l, const qn_cuda_variant *got,
                           const qn_launch *had, const qn_launch_form *best) {
  const int32_t n = p->nest.n_operands, wanted = count_class(best->classes, n, T);
  const int same_classes = !memcmp(v->classes, got->classes, (size_t)n);
  if (v != got && same_classes && v->rank == got->rank && v->is_wide < got->is_wide) return "a narrow one was there";
  const int is_lower = v->rank && (!got->rank || got->rank > v->rank);
  if (same_classes && v->is_wide == got->is_wide && is_lower) return "a lower rank was there";
  if (v->rank == best->rank && v->is_wide == best->is_wide && !memcmp(v->classes, best->classes, (size_t)n) &&
      (!same_classes || got->rank != v->rank || got->is_wide != v->is_wide))
    return "the best was there";
  if (!wanted && had->is_tiled && !l->is_tiled) return "tiles without need";
  int missing = 0, had_missing = 0;
  for (int32_t k = 0; k < n; k++) {
    missing += best->classes[k] == T && v->classes[k] != T;
    had_missing += best->classes[k] == T && got->classes[k] != T;
  }
  if (missing < had_missing) return "more tiles were there";
  const int has_rows = !wanted && count_class(best->classes, n, S) == 0;
  if (has_rows && had->item_elements == 1 && l->item_elements > 1 && !l->is_tiled) return "rows were there";
  return NULL;
}

static const char *check_pick(const problem *p, int n_subset) {
  static qn_launch launch, had;
  qn_launch_form form, best;
  const qn_cuda_variant *got = qn_launch_pick(subset, n_subset, dtypes_here, &p->nest, p->sizes, p->n_out, p->values, &form);
  if (got && !can_run(p, got, &had)) return "it cannot run";
  qn_launch_choose(&p->nest, p->sizes, p->n_out, p->values, &best);
  const char *wrong = NULL;
  for (int i = 0; i < n_subset && !wrong; i++) {
    if (!can_run(p, &subset[i], &launch)) continue;
    if (!got) return "there was one that can run";
    wrong = compare(p, &subset[i], &launch, got, &had, &best);
  }
  if (wrong || !got) return wrong;
  const int32_t n = p->nest.n_operands;
  if (form.rank != got->rank || form.is_wide != got->is_wide || memcmp(form.classes, got->classes, (size_t)n)) return "its form";
  return check_launch(p, &form, p->nest.n_elements <= MAX_ELEMENTS && below(2));
}

static void test_pick(void) {
  static problem p;
  int n_found = 0, n_none = 0;
  rng_seed(&r, 3);
  group_begin("picks");
  for (int i = 0; i < 4000; i++) {
    const int n = 1 + below(3), is_lean = below(2);
    if (is_lean) make_lean(n);
    else make_full(n);
    const int keep = below(3) == 0 ? 100 : 1 + below(60);
    int n_subset = 0;
    for (int j = 0; j < n_table; j++)
      if (below(100) < keep) subset[n_subset++] = table[j];
    for (int j = n_subset - 1; j > 0; j--) {
      const int other = below(j + 1);
      const qn_cuda_variant was = subset[j];
      subset[j] = subset[other], subset[other] = was;
    }
    do {
      if (below(5)) make_problem(&p);
      else make_huge(&p);
      make_operands(&p, n + 1);
    } while (p.n_out != 1);
    const char *wrong = check_pick(&p, n_subset);
    qn_launch_form form;
    const int found = qn_launch_pick(subset, n_subset, dtypes_here, &p.nest, p.sizes, 1, p.values, &form) != NULL;
    n_found += found, n_none += !found;
    if (!wrong && is_lean && keep == 100 && !found) wrong = "the lean policy has nothing";
    group_count(1);
    if (wrong) {
      if (!found) qn_launch_choose(&p.nest, p.sizes, 1, p.values, &form);
      group_fail("problem %d, %s, %d%%: %s: %s", i, is_lean ? "lean" : "full", keep, wrong, text_of(&p, &form));
    }
  }
  group_end();
  ok(n_found > 1000 && n_none > 100, "some were found (%d), some not (%d)", n_found, n_none);
}

/* ---- By hand ---- */

/* A nest of f32 from its extents and the strides of each operand, inner first. */
static void by_hand(problem *p, int32_t n_operands, int32_t rank, const i64 *n, const i64 *strides) {
  memset(p, 0xee, sizeof *p);
  p->n_out = 1, p->n_in = n_operands - 1, p->values = 0;
  p->nest.rank = rank, p->nest.n_operands = n_operands, p->nest.n_elements = 1;
  for (int32_t d = 0; d < rank; d++) p->nest.n[d] = n[d], p->nest.n_elements *= n[d];
  for (int32_t k = 0; k < n_operands; k++) {
    p->sizes[k] = 4;
    for (int32_t d = 0; d < rank; d++) p->nest.stride[k][d] = strides[k * rank + d];
  }
}

static const char *chosen(const problem *p) {
  static char text[16];
  qn_launch_form form;
  qn_launch_choose(&p->nest, p->sizes, p->n_out, p->values, &form);
  snprintf(text, sizeof text, "%dd ", form.rank);
  for (int32_t k = 0; k < p->nest.n_operands; k++) text[3 + k] = "cbst"[form.classes[k]];
  text[3 + p->nest.n_operands] = 0;
  if (form.is_wide) strcat(text, " i64");
  return text;
}

static void test_by_hand(void) {
  static problem p;
  by_hand(&p, 3, 1, (i64[]){1000}, (i64[]){4, 0, 4});
  is_str(chosen(&p), "1d cbc", "a row and a scalar");
  by_hand(&p, 3, 1, (i64[]){3}, (i64[]){4, 4, 4});
  is_str(chosen(&p), "1d ccc", "a short row alone");
  by_hand(&p, 3, 0, NULL, NULL);
  p.values = 1;
  is_str(chosen(&p), "1d bcc", "one element, one of them a value");
  by_hand(&p, 3, 2, (i64[]){1000, 1000}, (i64[]){4, 4000, 4, 0, 4, 4000});
  is_str(chosen(&p), "2d ccc", "a matrix and a row");
  by_hand(&p, 3, 2, (i64[]){3, 1000}, (i64[]){4, 12, 4, 0, 4, 12});
  is_str(chosen(&p), "2d sss", "short rows");
  by_hand(&p, 3, 2, (i64[]){3000, 3000}, (i64[]){12000, 4, 4, 12000, 4, 12000});
  is_str(chosen(&p), "2d tcc", "a transposed matrix");
  by_hand(&p, 3, 3, (i64[]){100, 3, 200}, (i64[]){2400, 800, 4, 4, 400, 1200, 4, 400, 1200});
  is_str(chosen(&p), "3d tcc", "a matrix transposed along its third dimension");
  by_hand(&p, 2, 2, (i64[]){3, 3000}, (i64[]){12000, 4, 4, 12});
  is_str(chosen(&p), "2d sc", "a transposed matrix of short rows");
  by_hand(&p, 2, 1, (i64[]){0x7fffffff}, (i64[]){4, 4});
  is_str(chosen(&p), "1d cc", "as many elements as 32 bits hold, in 8 GB");
  by_hand(&p, 2, 1, (i64[]){0x80000000}, (i64[]){4, 4});
  is_str(chosen(&p), "1d cc i64", "and one more");
  is_int(qn_launch_max_rank(1), 32, "room for 1 operand");
  is_int(qn_launch_max_rank(13), 29, "room for 13");
  is_int(qn_launch_max_rank(32), 12, "room for 32");
}

/* More than a kernel has room for. */
static void test_room(void) {
  static problem p;
  rng_seed(&r, 0);
  /* eight transposed inputs of 8 bytes: shared memory is for five */
  i64 strides[32 * 13];
  for (int k = 0; k < 9; k++) strides[2 * k] = k < 8 ? 8000 : 8, strides[2 * k + 1] = k < 8 ? 8 : 8000;
  by_hand(&p, 9, 2, (i64[]){1000, 1000}, strides);
  memset(p.sizes, 8, sizeof p.sizes);
  is_str(chosen(&p), "2d tttttsssc", "more tiles than shared memory holds");
  /* the dimension that is turned is one too many, and another is repeated in its place */
  i64 n[13] = {64, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 64}, next = 4;
  for (int d = 0; d < 13; next *= n[d++])
    for (int k = 0; k < 32; k++) strides[13 * k + d] = next;
  strides[0] = next / 64, strides[12] = 4;
  by_hand(&p, 32, 13, n, strides);
  qn_launch_form form;
  qn_launch_choose(&p.nest, p.sizes, p.n_out, p.values, &form);
  const char *wrong = check_launch(&p, &form, 0);
  ok(form.classes[0] == T && !wrong, "a turned dimension beyond the kernel's room%s%s", wrong ? ": " : "", wrong ? wrong : "");
}

/* ---- Division ---- */

/* The fields of division by n[0], as a kernel of elements has them. */
static void divisor(u64 d, int is_wide, u64 by[2]) {
  static problem p;
  static qn_launch launch;
  const qn_launch_form form = {.rank = 2, .is_wide = (uint8_t)is_wide, .n_operands = 1, .classes = {S}};
  by_hand(&p, 1, 2, (i64[]){(i64)d, 1}, (i64[]){8, 0});
  qn_launch_pack(&p.nest, p.sizes, 1, 0, &form, 0, &launch);
  memcpy(by, launch.args + 1 + 4 + 2 + 2, 16);
}

static void check_divisor(u64 d, int is_wide, u64 all) {
  const u64 limit = (u64)1 << (is_wide ? 63 : 31), m = (limit - 1) / d;
  u64 by[2], edges[] = {0, 1, d - 1, d, 2 * d - 1, 2 * d, m * d, m * d - 1, (m - 1) * d, limit - 1, limit - 2, limit / 2};
  int bad = 0;
  divisor(d, is_wide, by);
  bad |= by[0] < limit || (!is_wide && by[0] >> 32) || by[1] > 63;
  for (u64 x = 0; x < all; x++) bad |= divide(is_wide, x, by) != x / d;
  for (int i = 0; i < 12; i++) bad |= edges[i] < limit && divide(is_wide, edges[i], by) != edges[i] / d;
  for (int i = 0; i < 30; i++) {
    const u64 x = rng_below(&r, limit), multiple = x - x % d;
    bad |= divide(is_wide, x, by) != x / d || divide(is_wide, multiple, by) != multiple / d;
    if (multiple) bad |= divide(is_wide, multiple - 1, by) != multiple / d - 1;
  }
  group_count(1);
  if (bad) group_fail("%" PRIu64 ", %s", d, is_wide ? "wide" : "narrow");
}

static void test_divide(void) {
  rng_seed(&r, 4);
  group_begin("division");
  for (int is_wide = 0; is_wide < 2; is_wide++) {
    const u64 limit = (u64)1 << (is_wide ? 62 : 31);
    for (u64 d = 1; d <= 20000; d++) check_divisor(d, is_wide, d <= 300 ? 5000 : 0);
    for (u64 power = 2; power <= limit; power *= 2) {
      for (u64 d = power - 1; d <= power + 1; d++)
        if (d < limit) check_divisor(d, is_wide, 0);
    }
    check_divisor(limit - 1, is_wide, 0);
    for (int i = 0; i < 20000; i++) {
      const u64 d = 1 + rng_below(&r, limit - 1) / ((u64)1 << below(is_wide ? 60 : 30));
      check_divisor(d, is_wide, 0);
    }
  }
  group_end();
}

int main(void) {
  test_by_hand();
  test_room();
  test_choose();
  test_huge();
  test_pick();
  test_divide();
  return done_testing();
}
