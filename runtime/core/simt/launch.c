/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: the choice of a CUDA kernel for a nest and its packed arguments (see launch.h): classes and rank, the transposed
 * dimension, the size of an item, 32-bit or 64-bit indices. Knows no driver, no ops, no addresses.
 *
 * The aim is coalesced access: many bytes a warp with one instruction. Best are rows: 16 bytes a thread, contiguous over the
 * warp. An input that is contiguous along another dimension than the outputs is read through tiles in shared memory, so that
 * reads and writes are both coalesced. Other nests go element by element in the outputs' order: the writes are coalesced. */
#include <string.h>

#include "core/simt/launch.h"

#define TILE 32           /* elements of a tile along dimension 0, and of the smaller ones along dimension 1 */
#define WIDE_TILE 64      /* elements of wide tiles along dimension 1 */
#define WIDE_TILE_BYTES 16 /* tiles are wide up to this size of one item of each tiled input, together */
#define VECTOR 16         /* bytes of one access */
#define MAX_STRIDES 384   /* ORDER MAX_STRIDES of targets/cuda/variants.lua: arguments stay within QN_LAUNCH_ARGS */
#define FIXED_FIELDS 4    /* items, row_items, flags, rank: after the addresses */
#define AT_FLAGS 2
#define FLAG_STREAMED 1
#define FLAG_VALUES 8     /* the bit of input 0 */

/* In rows of fewer items than this, most items are partial or empty. */
#define MIN_ROW_ITEMS 4
/* Tiles less than a quarter full, or a single tile, are no faster than single elements. */
#define MIN_TILE_SIDE 16
#define MIN_TILED_ELEMENTS (TILE * TILE)
/* The bytes an element of all tiled inputs that fit the default 48 KB of shared memory, in tiles of [32][33] elements. */
#define MAX_TILED_BYTES (48 * 1024 / (TILE * (TILE + 1)))
/* Outputs of at least this size are streamed, since they would evict data that is read next from the L2 cache (H100: 50 MB). */
#define STREAMED_BYTES ((int64_t)32 << 20)

/* The division of a nest into the items of a kernel. */
typedef struct cut {
  int32_t rank;   /* dimensions that one launch covers */
  int32_t room;   /* dimensions that its arguments have room for */
  int32_t turned; /* the nest's dimension that is the kernel's dimension 1; the two are swapped */
  int is_tiled;
  uint32_t item_elements;
  uint64_t row_items, columns; /* columns: of items, along dimension 1 */
  uint64_t n_items;
} cut;

int32_t qn_launch_max_rank(int32_t n_operands) {
  const int32_t room = MAX_STRIDES / n_operands;
  return room < QUERN_MAX_NDIM ? room : QUERN_MAX_NDIM;
}

/* ---- Cuts ---- */

/* The nest's dimension that is dimension d of a kernel. Dimensions beyond the nest's rank have extent 1. */
static int32_t kernel_dimension(const cut *c, int32_t d) {
  if (d == 1) return c->turned;
  return d == c->turned ? 1 : d;
}

static int64_t kernel_extent(const qn_nest *nest, const cut *c, int32_t d) {
  const int32_t at = kernel_dimension(c, d);
  return at < nest->rank ? nest->n[at] : 1;
}

static int64_t kernel_stride(const qn_nest *nest, const cut *c, int32_t k, int32_t d) {
  const int32_t at = kernel_dimension(c, d);
  return at < nest->rank ? nest->stride[k][at] : 0;
}

/* The longest dimension along which all tiled inputs are contiguous; 0: there is none. */
static int32_t find_turned(const qn_nest *nest, const uint8_t *sizes, const qn_launch_form *form) {
  int32_t best = 0;
  for (int32_t d = 1; d < nest->rank; d++) {
    int all = 1;
    for (int32_t k = 0; k < nest->n_operands && all; k++)
      all = form->classes[k] != QN_CLASS_TILED || nest->stride[k][d] == sizes[k];
    if (all && (!best || nest->n[d] > nest->n[best])) best = d;
  }
  return best;
}

/* The elements of an item of a kernel without tiles. */
static uint32_t item_elements_of(int32_t n_operands, const uint8_t *sizes, const uint8_t *classes) {
  uint32_t widest = 1;
  for (int32_t k = 0; k < n_operands; k++) {
    if (classes[k] == QN_CLASS_STRIDED) return 1;
    if (sizes[k] > widest) widest = sizes[k];
  }
  return widest < VECTOR ? VECTOR / widest : 1;
}

/* Elements of a tile along dimension 1. ORDER tile_columns of gen/targets/cuda/kernels.lua */
static uint32_t tile_columns(int32_t n_operands, const uint8_t *sizes, const uint8_t *classes) {
  int32_t bytes = 0;
  for (int32_t k = 0; k < n_operands; k++) bytes += classes[k] == QN_CLASS_TILED ? sizes[k] : 0;
  return bytes <= WIDE_TILE_BYTES ? WIDE_TILE : TILE;
}

/* Computes *c; returns 0 if a kernel of this form cannot run the nest. Does not check the width of its indices. */
static int cut_nest(const qn_nest *nest, const uint8_t *sizes, const qn_launch_form *form, cut *c) {
  c->is_tiled = memchr(form->classes, QN_CLASS_TILED, (size_t)nest->n_operands) != NULL;
  c->room = form->rank ? form->rank : qn_launch_max_rank(nest->n_operands);
  if (form->rank && nest->rank > form->rank) return 0;
  const int32_t least = c->is_tiled ? 2 : 1, rank = nest->rank > least ? nest->rank : least;
  c->rank = form->rank ? form->rank : rank < c->room ? rank : c->room;
  c->turned = c->is_tiled ? find_turned(nest, sizes, form) : 1;
  if (!c->turned) return 0;
  const uint64_t n0 = (uint64_t)kernel_extent(nest, c, 0);
  if (c->is_tiled) {
    const uint32_t side = tile_columns(nest->n_operands, sizes, form->classes);
    c->item_elements = TILE * side;
    c->row_items = (n0 + TILE - 1) / TILE;
    c->columns = ((uint64_t)kernel_extent(nest, c, 1) + side - 1) / side;
  } else { /* enough for a row that begins anywhere in an item */
    c->item_elements = item_elements_of(nest->n_operands, sizes, form->classes);
    c->row_items = (n0 + 2 * c->item_elements - 2) / c->item_elements;
    c->columns = (uint64_t)kernel_extent(nest, c, 1);
  }
  c->n_items = c->row_items;
  if (c->rank > 1) c->n_items *= c->columns;
  for (int32_t d = 2; d < c->rank; d++) c->n_items *= (uint64_t)kernel_extent(nest, c, d);
  return 1;
}

/* Whether 32-bit indices suffice: items are below 2^31, extents and strides fit an i32 each. Offsets need not: kernels compute
 * them by a widening multiplication of index and stride, and add them to 64-bit addresses. */
static int is_narrow(const qn_nest *nest, const cut *c) {
  if (c->n_items > INT32_MAX) return 0;
  for (int32_t d = 0; d < c->rank; d++) {
    if (kernel_extent(nest, c, d) > INT32_MAX) return 0;
    for (int32_t k = 0; k < nest->n_operands; k++) {
      const int64_t s = kernel_stride(nest, c, k, d);
      if (s != (int32_t)s) return 0;
    }
  }
  return 1;
}

/* ---- Choosing ---- */

/* The class of an operand along dimension 0. At rank 0 every class fits. */
static uint8_t class_of(const qn_nest *nest, const uint8_t *sizes, uint32_t values, int32_t k) {
  if (values >> k & 1 || !sizes[k]) return QN_CLASS_BROADCAST;
  if (nest->rank == 0 || nest->stride[k][0] == sizes[k]) return QN_CLASS_CONTIGUOUS;
  return nest->stride[k][0] == 0 ? QN_CLASS_BROADCAST : QN_CLASS_STRIDED;
}

/* The number of inputs that would be tiled if d were the transposed dimension: strided along 0 and contiguous along d. */
static int32_t count_tiled(const qn_nest *nest, const uint8_t *sizes, int32_t n_in, const uint8_t *classes, int32_t d) {
  int32_t count = 0;
  for (int32_t k = 0; k < n_in; k++) count += classes[k] == QN_CLASS_STRIDED && nest->stride[k][d] == sizes[k];
  return count;
}

/* Makes inputs tiled where the outputs are contiguous and some input is contiguous along another dimension. */
static int choose_turned(const qn_nest *nest, const uint8_t *sizes, int32_t n_in, uint8_t *classes) {
  if (nest->rank < 2 || nest->n[0] < MIN_TILE_SIDE || nest->n_elements < MIN_TILED_ELEMENTS) return 0;
  for (int32_t k = n_in; k < nest->n_operands; k++)
    if (classes[k] != QN_CLASS_CONTIGUOUS) return 0;
  int32_t best = 0, most = 0;
  for (int32_t d = 1; d < nest->rank; d++) {
    const int32_t count = nest->n[d] < MIN_TILE_SIDE ? 0 : count_tiled(nest, sizes, n_in, classes, d);
    if (count > most || (count && count == most && nest->n[d] > nest->n[best])) best = d, most = count;
  }
  if (!best) return 0;
  int32_t bytes = 0; /* inputs beyond the size of shared memory stay strided */
  for (int32_t k = 0; k < n_in; k++) {
    if (classes[k] != QN_CLASS_STRIDED || nest->stride[k][best] != sizes[k] || bytes + sizes[k] > MAX_TILED_BYTES) continue;
    classes[k] = QN_CLASS_TILED;
    bytes += sizes[k];
  }
  return 1;
}

void qn_launch_choose(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, qn_launch_form *form) {
  const int32_t n = nest->n_operands;
  form->rank = (uint8_t)(nest->rank == 0 ? 1 : nest->rank > 3 ? 0 : nest->rank);
  form->n_operands = (uint8_t)n;
  for (int32_t k = 0; k < n; k++) form->classes[k] = class_of(nest, sizes, values, k);
  if (!choose_turned(nest, sizes, n - n_out, form->classes) && nest->rank > 1) {
    /* Many short rows go element by element. Their contiguous operands are taken as strided, so that one kernel serves all. A
     * single short row is little work and uses the kernel for long rows. */
    const uint32_t elements = item_elements_of(n, sizes, form->classes);
    const int is_short = elements > 1 && nest->n[0] < (int64_t)(MIN_ROW_ITEMS * elements);
    for (int32_t k = 0; k < n && is_short; k++)
      if (form->classes[k] == QN_CLASS_CONTIGUOUS) form->classes[k] = QN_CLASS_STRIDED;
  }
  cut c;
  form->is_wide = (uint8_t)!(cut_nest(nest, sizes, form, &c) && is_narrow(nest, &c));
}

/* ---- Picking ---- */

/* The costs of a kernel compared with one made for the nest. Each outweighs the sum of all below it, for up to 32
 * operands. */
enum {
  COST_STRIDED_TILE = 1 << 13, /* each strided input that could be tiled */
  COST_TILES = 1 << 12,        /* tiles, where the best kernel has none */
  COST_ROWS = 1 << 11,         /* elements in place of rows, or rows in place of elements */
  COST_WIDE = 1 << 10,
  COST_ANY_RANK = 1 << 9,
  COST_RANK = 1 << 7, /* each surplus dimension */
  COST_CLASS = 1,     /* each operand taken as a more general class */
};

/* Whether a kernel's classes are the nest's or more general ones. cut_nest checks the tiled ones. */
static int can_serve(const qn_nest *nest, const uint8_t *sizes, int32_t n_in, uint32_t values, const uint8_t *classes) {
  for (int32_t k = 0; k < nest->n_operands; k++) {
    const int is_value = values >> k & 1, is_any = nest->rank == 0;
    const uint8_t class = classes[k];
    if (class == QN_CLASS_STRIDED) continue;
    if (class == QN_CLASS_BROADCAST && (is_value || is_any || !sizes[k] || nest->stride[k][0] == 0)) continue;
    if (class == QN_CLASS_CONTIGUOUS && !is_value && (is_any || nest->stride[k][0] == sizes[k])) continue;
    if (class == QN_CLASS_TILED && !is_value && k < n_in) continue;
    return 0;
  }
  return 1;
}

/* The cost of a kernel of `form` compared with one of `best`. */
static int32_t cost_of(const qn_launch_form *form, const cut *c, const qn_launch_form *best, const cut *best_cut) {
  int32_t cost = 0;
  for (int32_t k = 0; k < form->n_operands; k++) {
    if (form->classes[k] == best->classes[k]) continue;
    cost += best->classes[k] == QN_CLASS_TILED ? COST_STRIDED_TILE : COST_CLASS;
  }
  if (c->is_tiled && !best_cut->is_tiled) cost += COST_TILES;
  if (!c->is_tiled && !best_cut->is_tiled && (c->item_elements > 1) != (best_cut->item_elements > 1)) cost += COST_ROWS;
  if (form->is_wide && !best->is_wide) cost += COST_WIDE;
  if (form->rank != best->rank) cost += form->rank == 0 ? COST_ANY_RANK : COST_RANK * (form->rank - best->rank);
  return cost;
}

const qn_cuda_variant *qn_launch_of_dtypes(const qn_cuda_variant *variants, int32_t n_variants, const uint8_t *dtypes,
                                           int32_t n_operands, int32_t *n) {
  const size_t size = (size_t)n_operands;
  int32_t low = 0, high = n_variants, end;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (memcmp(variants[middle].dtypes, dtypes, size) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (end = low; end < n_variants && memcmp(variants[end].dtypes, dtypes, size) == 0;) end++;
  *n = end - low;
  return variants + low;
}

const qn_cuda_variant *qn_launch_pick(const qn_cuda_variant *variants, int32_t n_variants, const uint8_t *dtypes,
                                      const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values,
                                      qn_launch_form *form) {
  const size_t n = (size_t)nest->n_operands;
  const qn_cuda_variant *picked = NULL;
  int32_t least = INT32_MAX;
  qn_launch_form best, other;
  cut best_cut, c;
  qn_launch_choose(nest, sizes, n_out, values, &best);
  if (!cut_nest(nest, sizes, &best, &best_cut)) return NULL; /* impossible: `best` is made for this nest */
  other.n_operands = (uint8_t)n;
  for (int32_t i = 0; i < n_variants && least > 0; i++) {
    const qn_cuda_variant *v = &variants[i];
    if (memcmp(v->dtypes, dtypes, n) != 0) continue;
    if (!can_serve(nest, sizes, nest->n_operands - n_out, values, v->classes)) continue;
    other.rank = v->rank;
    other.is_wide = v->is_wide;
    memcpy(other.classes, v->classes, n);
    if (!cut_nest(nest, sizes, &other, &c) || (!v->is_wide && !is_narrow(nest, &c))) continue;
    const int32_t cost = cost_of(&other, &c, &best, &best_cut);
    if (cost >= least) continue;
    least = cost;
    picked = v;
    *form = other;
  }
  return picked;
}

/* ---- Packing ---- */

/* The least s with d <= 2^s and the least m with m d >= 2^(bits + s). Proof: q_fast_divide.
 * The first bit of m is always 1, since d <= 2^s < 2 d; for 64-bit kernels the other 63 are computed bit by bit. */
void qn_launch_divisor(uint64_t d, int is_wide, uint64_t by[2]) {
  const unsigned s = d == 1 ? 0 : 64 - (unsigned)__builtin_clzll(d - 1);
  uint64_t m, rest;
  if (!is_wide) {
    m = ((uint64_t)1 << (31 + s)) / d;
    rest = ((uint64_t)1 << (31 + s)) % d;
  } else {
    m = 1;
    rest = ((uint64_t)1 << s) - d;
    for (int bit = 0; bit < 63; bit++) {
      const int more = 2 * rest >= d;
      rest = 2 * rest - (more ? d : 0);
      m = 2 * m + (uint64_t)more;
    }
  }
  by[0] = m + (rest != 0);
  by[1] = s;
}

static uint64_t flags_of(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values) {
  int64_t item = 0;
  for (int32_t k = nest->n_operands - n_out; k < nest->n_operands; k++) item += sizes[k];
  const int is_streamed = item && nest->n_elements >= STREAMED_BYTES / item;
  return (uint64_t)values << FLAG_VALUES | (is_streamed ? FLAG_STREAMED : 0);
}

static void pack_repeats(const qn_nest *nest, const cut *c, qn_launch *launch) {
  launch->repeat_rank = nest->rank > c->rank ? nest->rank - c->rank : 0;
  for (int32_t j = 0; j < launch->repeat_rank; j++) {
    launch->repeat_n[j] = kernel_extent(nest, c, c->rank + j);
    for (int32_t k = 0; k < nest->n_operands; k++) launch->repeat_stride[k][j] = kernel_stride(nest, c, k, c->rank + j);
  }
}

void qn_launch_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, const qn_launch_form *form,
                    int32_t n_params, qn_launch *launch) {
  const int32_t n = nest->n_operands;
  cut c;
  if (!cut_nest(nest, sizes, form, &c)) return; /* impossible: the form was made for this nest */
  launch->form.rank = form->rank;
  launch->form.is_wide = form->is_wide;
  launch->form.n_operands = form->n_operands;
  memcpy(launch->form.classes, form->classes, (size_t)n);
  launch->is_tiled = (uint8_t)c.is_tiled;
  launch->item_elements = c.item_elements;
  launch->n_items = c.n_items;
  launch->shared_bytes = 0;
  pack_repeats(nest, &c, launch);

  uint64_t *at = launch->args + n;
  at[0] = c.n_items;
  at[1] = c.row_items;
  at[AT_FLAGS] = flags_of(nest, sizes, n_out, values);
  at[3] = (uint64_t)c.rank;
  at += FIXED_FIELDS;
  for (int32_t d = 0; d < c.rank; d++) at[d] = (uint64_t)kernel_extent(nest, &c, d);
  at += c.room;
  for (int32_t k = 0; k < n; k++, at += c.room)
    for (int32_t d = 0; d < c.rank; d++) at[d] = (uint64_t)kernel_stride(nest, &c, k, d);
  for (int32_t d = 0; d < c.rank && form->rank != 1; d++) /* a kernel of rank 1 divides nothing */
    qn_launch_divisor(d == 0 ? c.row_items : d == 1 ? c.columns : (uint64_t)kernel_extent(nest, &c, d), form->is_wide, at + 2 * d);
  at += 2 * c.room;
  launch->at_params = (int32_t)(at - launch->args);
  launch->n_args = launch->at_params + n_params;
}

int qn_launch_is_streamed(const qn_launch *launch) {
  return (launch->args[launch->form.n_operands + AT_FLAGS] & FLAG_STREAMED) != 0;
}

/* ---- Grids ---- */

void qn_launch_block(const qn_launch *launch, uint32_t *x, uint32_t *y) {
  *x = launch->is_tiled ? TILE : QN_LAUNCH_THREADS;
  *y = launch->is_tiled ? QN_LAUNCH_THREADS / TILE : 1;
}

uint32_t qn_launch_grid_of(const qn_launch *launch, uint64_t n_items, uint32_t items_per_thread, uint32_t resident) {
  const uint64_t share = launch->is_tiled ? 1 : (uint64_t)QN_LAUNCH_THREADS * items_per_thread; /* items of a block in one step */
  const uint64_t blocks = n_items / share + (n_items % share != 0);
  /* the grid stride of a 32-bit kernel must be below 2^31, as must every grid */
  uint64_t most = launch->form.is_wide ? INT32_MAX : INT32_MAX / ((uint64_t)QN_LAUNCH_THREADS * items_per_thread);
  if (resident < most) most = resident ? resident : 1;
  if (blocks <= most) return blocks ? (uint32_t)blocks : 1;
  /* all blocks have the same number of steps, but for the last wave */
  const uint64_t waves = blocks / most + (blocks % most != 0);
  return (uint32_t)(blocks / waves + (blocks % waves != 0));
}

uint32_t qn_launch_grid(const qn_launch *launch, uint32_t items_per_thread, uint32_t resident) {
  return qn_launch_grid_of(launch, launch->n_items, items_per_thread, resident);
}
