/* SPDX-License-Identifier: Apache-2.0
 *
 * text_driver.cc: runs generated CUDA kernels on the CPU, thread by thread, on random problems, and compares memory bit for bit
 * with what the C tree "ref" gives, or a C kernel for contiguous operands; nothing but the outputs' elements may change, and no
 * read may leave an operand. Part of t710-cuda-text and t745-cuda-source. kernels.inc has a line KERNEL(name, words of its
 * arguments, outputs, op, the C kernel or NULL: the tree's op, dtypes, rank or 0 for n, classes, extents it has room for, index
 * bits, elements of a slot or 0 for tiles, slots of a turn, parameters as bits) for each; those C kernels are declared before it,
 * in c_kernels.inc. argv[1]: the seed, argv[2]: problems per kernel. */
#include "grid.h"
#include "problem.h"
#include "ref.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef uint64_t u64;
typedef int64_t i64;

enum { MAX_OPERANDS = 12, MAX_RANK = 32, MAX_PARAMS = 8, REGION = 1 << 18, PAGE = 4096 };

typedef void c_kernel(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params);
extern "C" {
#include "c_kernels.inc"
}

struct kernel {
  const char *name, *op;
  c_kernel *in_c;
  const char *dtypes, *classes;
  int words, n_out, rank, room, index_bits, slot, turn;
  u64 params[MAX_PARAMS];
  void (*run)(const u64 *words);
};

/* A struct of so many words goes the way that the kernel's own does. */
template <int N> struct words_of { u64 w[N]; };
#define KERNEL(name, n, ...) extern "C" void name(const words_of<n> a);
#include "kernels.inc"
#undef KERNEL
#define KERNEL(name, n, n_out, op, in_c, dtypes, rank, classes, room, index_bits, slot, turn, ...)                            \
  {#name, op, in_c, dtypes, classes, n, n_out, rank, room, index_bits, slot, turn, {__VA_ARGS__},                             \
   [](const u64 *w) {                                                                                                         \
     words_of<n> a;                                                                                                           \
     memcpy(&a, w, sizeof a);                                                                                                 \
     name(a);                                                                                                                 \
   }},
static const kernel kernels[] = {
#include "kernels.inc"
};
#undef KERNEL

/* ---- Random ---- */

static int below(int n) { return (int)(next_random() % (u64)n); }

/* ---- dtypes ---- */

struct dtype { const char *name; DLDataType type; };
static const dtype dtypes[] = {
    {"bool", {kDLBool, 8, 1}}, {"i8", {kDLInt, 8, 1}}, {"i16", {kDLInt, 16, 1}}, {"i32", {kDLInt, 32, 1}}, {"i64", {kDLInt, 64, 1}},
    {"u8", {kDLUInt, 8, 1}}, {"u16", {kDLUInt, 16, 1}}, {"u32", {kDLUInt, 32, 1}}, {"u64", {kDLUInt, 64, 1}},
    {"f16", {kDLFloat, 16, 1}}, {"bf16", {kDLBfloat, 16, 1}}, {"f32", {kDLFloat, 32, 1}}, {"f64", {kDLFloat, 64, 1}},
    /* bits of a size: the dtype that the C side is asked with */
    {"b8", {kDLUInt, 8, 1}}, {"b16", {kDLFloat, 16, 1}}, {"b32", {kDLInt, 32, 1}}, {"b64", {kDLInt, 64, 1}}};

static DLDataType dtype_of(const char *name, size_t length) {
  for (const dtype &d : dtypes)
    if (strlen(d.name) == length && !memcmp(d.name, name, length)) return d.type;
  fprintf(stderr, "text_driver: unknown dtype %s\n", name);
  exit(2);
}

static const u64 special_f64[] = {
    0, 1ull << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
    0xfff8000000012345, 0x7ff0000000000001, 1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x41dfffffffc00000,
    0x41e0000000000000, 0xc1e0000000000000, 0x43e0000000000000};
static const u64 special_f32[] = {
    0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 1, 0x007fffff, 0x00800000,
    0x7f7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0x477fe000, 0x33800000};
static const u64 special_int[] = {
    0, 1, ~0ull, 2, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0x7fffffffffffffff, 1ull << 63, 63, 64};

static void fill(char *at, DLDataType type) {
  u64 bits = next_random();
  int kind = below(3);
  if (type.code == kDLFloat && type.bits >= 32 && kind == 0) {
    double value = (double)(below(4001) - 2000) / 64;
    float narrow = (float)value;
    if (type.bits == 64) memcpy(&bits, &value, 8);
    else memcpy(&bits, &narrow, 4);
  } else if (type.code == kDLFloat && type.bits >= 32 && kind == 1) {
    bits = type.bits == 64 ? special_f64[below(sizeof special_f64 / 8)] : special_f32[below(sizeof special_f32 / 8)];
  } else if (type.code != kDLFloat && type.code != kDLBfloat) {
    if (kind == 0) bits = (u64)(below(100) - 50);
    if (kind == 1) bits = special_int[below(sizeof special_int / 8)];
  }
  memcpy(at, &bits, type.bits / 8);
}

/* ---- Running a kernel ---- */

extern "C" grid_place qc_host; /* cuda_host.h's */

struct launched { const kernel *k; const u64 *words; };
static void run_thread(void *arg) {
  const launched *l = (const launched *)arg;
  l->k->run(l->words);
}

static bool launch(const kernel *k, const u64 *words, int blocks, int threads, grid_order order) {
  launched l = {k, words};
  const grid_dim block = k->slot ? grid_dim{(unsigned)threads, 1, 1} : grid_dim{32, 8, 1};
  const grid_end end = grid_run(&qc_host, grid_dim{(unsigned)blocks, 1, 1}, block, order, run_thread, &l);
  if (end != GRID_DONE) printf("# %s: some threads of a block are at a barrier, the others have ended\n", k->name);
  else if (k->slot && grid.n_waits) printf("# %s: has a barrier, and nothing to wait for\n", k->name);
  else return true;
  return false;
}

/* ---- One problem ---- */

struct operand {
  DLDataType type;
  char cls;
  i64 stride[MAX_RANK]; /* bytes */
  i64 low, high;        /* bytes before element 0, and from it to the end */
  bool is_value;        /* it is in the arguments */
  int twin;             /* of an output: the input that it replaces, or -1 */
  char *region, *first; /* mapped memory between two pages that are not; element 0 */
  char *wanted;         /* of an output: what C gives, contiguous */
};

static char *regions[MAX_OPERANDS], *expected[MAX_OPERANDS], *packed[MAX_OPERANDS];

/* The indices of an index op: of class 'i' here, what would be the address of the first element is its index. They are those of a
 * compact tensor with the problem's dimensions in any order, some of them walked backwards. */
static bool has_indices(const kernel *k) { return k->classes[0] == 'i'; }

static void lay_indices(operand *o, int rank, const i64 *n, i64 origin) {
  int order[MAX_RANK];
  i64 next = 1;
  for (int d = 0; d < rank; d++) order[d] = d;
  for (int d = rank - 1; d > 0; d--) {
    int e = below(2) ? d : below(d + 1), was = order[d];
    order[d] = order[e], order[e] = was;
  }
  for (int d = 0; d < rank; d++) {
    const i64 extent = n[order[d]], stride = below(4) ? next : -next;
    o->stride[order[d]] = stride;
    if (stride < 0 && extent) origin -= (extent - 1) * stride;
    next *= extent > 1 ? extent : 1;
  }
  o->first = (char *)(uintptr_t)origin;
}

/* Strides by the operand's class, other dimensions in any order, with gaps, any sign; outer ones of inputs may be 0. */
static void lay_out(operand *o, int rank, const i64 *n, bool is_output) {
  const i64 size = o->type.bits / 8;
  int order[MAX_RANK], first = o->cls == 't' ? 1 : 0;
  for (int d = 0; d < rank; d++) order[d] = d;
  for (int d = rank - 1; d > 0; d--) {
    int e = below(d + 1), was = order[d];
    order[d] = order[e], order[e] = was;
  }
  if (o->cls == 'c' || o->cls == 't')
    for (int d = 0; d < rank; d++)
      if (order[d] == first) order[d] = order[0], order[0] = first;
  i64 next = size;
  for (int d = 0; d < rank; d++) {
    int dim = order[d];
    bool fixed = (o->cls == 'c' || o->cls == 't') && dim == first;
    bool zero = (o->cls == 'b' && dim == 0) || (!fixed && !is_output && below(6) == 0);
    if (!fixed && below(3) == 0) next += size * (1 + below(3));
    o->stride[dim] = zero ? 0 : next;
    if (!zero) next *= n[dim] > 1 ? n[dim] : 1;
    if (!fixed && below(3) == 0) o->stride[dim] = -o->stride[dim];
  }
  o->low = 0, o->high = size;
  for (int d = 0; d < rank; d++) {
    i64 reach = n[d] > 1 ? (n[d] - 1) * o->stride[d] : 0;
    if (reach < 0) o->low -= reach;
    else o->high += reach;
  }
}

static i64 offset_of(const operand *o, int rank, const i64 *n, i64 i) {
  i64 offset = 0;
  for (int d = 0; d < rank; d++) {
    offset += i % n[d] * o->stride[d];
    i /= n[d];
  }
  return offset;
}

static DLTensor tensor_of(const operand *o, char *data, int rank, i64 *shape, const i64 *n, i64 *strides, bool is_compact) {
  i64 next = 1;
  for (int d = 0; d < rank; d++) {
    shape[rank - 1 - d] = n[d];
    strides[rank - 1 - d] = is_compact ? next : o->stride[d] / (o->type.bits / 8);
    next *= n[d];
  }
  return DLTensor{data, {kDLCPU, 0}, rank, o->type, shape, strides, 0};
}

/* What C gives for all indices from `origin` on, which are as many as there are elements, in the output's `wanted`. */
static bool compute_of_indices(const kernel *k, operand *o, int rank, const i64 *n, i64 total, i64 origin, int n_params) {
  const i64 size = o[1].type.bits / 8;
  ref_op *op = NULL;
  ref_scalar scalars[MAX_PARAMS];
  for (int p = 0; p < n_params; p++) scalars[p].kind = REF_I64, scalars[p].v.i = p + 1 + (p ? 0 : 2 * origin);
  ref_call call = {};
  call.size = sizeof call, call.params = scalars, call.n_params = n_params;
  DLTensor out = {packed[0], {kDLCPU, 0}, 1, o[1].type, &total, NULL, 0}, *outs = &out;
  if (ref_op_find(NULL, k->op, &op)) return printf("# %s: %s\n", k->name, ref_last_error()), false;
  ref_status status = ref_op_call(op, 0, NULL, 1, &outs, &call);
  ref_op_release(op);
  if (status) return printf("# %s: %s\n", k->name, ref_last_error()), false;
  for (i64 i = 0; i < total; i++) {
    const i64 index = (i64)(uintptr_t)o[0].first + offset_of(&o[0], rank, n, i);
    memcpy(o[1].wanted + i * size, packed[0] + (index - origin) * size, (size_t)size);
  }
  return true;
}

/* What C gives for the inputs, in the outputs' `wanted`: by the tree's op or by a kernel for contiguous operands. */
static bool compute(const kernel *k, operand *o, int count, int rank, const i64 *n, i64 total, int n_params) {
  const int n_in = count - k->n_out;
  if (k->in_c) {
    i64 stride[MAX_OPERANDS][2] = {}, extents[2] = {total, 1};
    for (int j = 0; j < count; j++) {
      const i64 size = stride[j][0] = o[j].type.bits / 8;
      for (i64 i = 0; j < n_in && i < total; i++)
        memcpy(packed[j] + i * size, o[j].first + offset_of(&o[j], rank, n, i), (size_t)size);
    }
    if (total) k->in_c(packed, stride, extents, k->params);
    return true;
  }
  i64 shape[MAX_OPERANDS][MAX_RANK], strides[MAX_OPERANDS][MAX_RANK];
  DLTensor t[MAX_OPERANDS], *in[MAX_OPERANDS];
  for (int j = 0; j < count; j++) {
    t[j] = tensor_of(&o[j], j >= n_in ? o[j].wanted : o[j].first, rank, shape[j], n, strides[j], j >= n_in);
    in[j] = &t[j];
  }
  ref_op *op = NULL;
  ref_scalar scalars[MAX_PARAMS];
  for (int p = 0; p < n_params; p++) scalars[p].kind = REF_I64, scalars[p].v.i = p + 1;
  ref_call call = {};
  call.size = sizeof call, call.params = scalars, call.n_params = n_params;
  if (ref_op_find(NULL, k->op, &op)) return printf("# %s: %s\n", k->name, ref_last_error()), false;
  ref_status status = ref_op_call(op, n_in, in, k->n_out, in + n_in, &call);
  ref_op_release(op);
  if (status) return printf("# %s: %s\n", k->name, ref_last_error()), false;
  return true;
}

static void tell(const kernel *k, const operand *o, int count, int rank, const i64 *n, i64 total, int turn) {
  printf("# %s, problem %d: rank %d, extents", k->name, turn, rank);
  for (int d = 0; d < rank; d++) printf(" %lld", (long long)n[d]);
  for (int j = 0; j < count; j++) {
    printf(", operand %d at %lld steps %lld", j, (long long)(o[j].first - o[j].region), (long long)o[j].stride[0]);
    if (o[j].is_value) printf(", a value");
    if (o[j].twin >= 0) printf(", in place of %d", o[j].twin);
  }
  printf("\n");
  for (int j = count - k->n_out; j < count; j++) {
    const size_t size = o[j].type.bits / 8;
    for (i64 i = 0; i < total; i++) {
      const char *got = o[j].first + offset_of(&o[j], rank, n, i), *wanted = o[j].wanted + i * (i64)size;
      u64 g = 0, e = 0;
      if (!memcmp(got, wanted, size)) continue;
      memcpy(&g, got, size);
      memcpy(&e, wanted, size);
      printf("#   operand %d, element %lld: got 0x%llx, wanted 0x%llx\n", j, (long long)i, (unsigned long long)g,
             (unsigned long long)e);
      return;
    }
  }
  printf("#   something beside the outputs' elements was written\n");
}

/* Operands of random layouts, and the extents that they share. */
struct problem {
  const kernel *k;
  int turn, count, n_in, rank, n_params;
  i64 n[MAX_RANK], total, origin;
  operand o[MAX_OPERANDS];
};

static void choose_extents(problem *p) {
  static const int extents[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 65, 100, 257, 1000, 2500};
  const kernel *k = p->k;
  p->rank = k->rank ? k->rank : 1 + below(7);
  if (k->slot == 0 && p->rank < 2) p->rank = 2;
  p->total = 1;
  for (int d = 0; d < p->rank; d++) {
    p->n[d] = d == 0 || (k->slot == 0 && d == 1) ? extents[below(k->slot ? 16 : 13)] : 1 + below(4);
    if (below(40) == 0) p->n[d] = 0;
    while (p->total * p->n[d] > 4000) p->n[d] = p->n[d] / 2;
    p->total *= p->n[d];
  }
}

static void choose_layouts(problem *p) {
  const char *at = p->k->dtypes;
  for (int j = 0; j < p->count; j++) {
    operand *o = &p->o[j];
    const size_t length = strcspn(at, " ");
    o->type = dtype_of(at, length);
    o->cls = p->k->classes[j];
    at += length + (at[length] == ' ');
    if (o->cls == 'i') {
      /* of arange, which starts at 1 and steps by 2, the indices may begin anywhere: the numbers are those of another start */
      p->origin = strcmp(p->k->op, "arange") || below(2) ? 0 : ((i64)1 << 33) + below(100);
      lay_indices(o, p->rank, p->n, p->origin);
      o->twin = -1;
      continue;
    }
    lay_out(o, p->rank, p->n, j >= p->n_in);
    o->is_value = j < p->n_in && (o->cls == 'b' || o->cls == 's') && below(4) == 0;
    if (o->is_value) memset(o->stride, 0, sizeof o->stride), o->low = 0, o->high = o->type.bits / 8;
    o->wanted = packed[j];
    o->twin = -1;
  }
}

/* In place: an output is an input of its class and item size; both lie as the output does. */
static void choose_twins(problem *p) {
  operand *o = p->o;
  for (int out = p->n_in; out < p->count; out++)
    for (int j = 0; j < p->n_in && o[out].twin < 0; j++) {
      bool is_taken = o[j].is_value;
      for (int other = p->n_in; other < out; other++) is_taken = is_taken || o[other].twin == j;
      if (is_taken || o[j].type.bits != o[out].type.bits || o[j].cls != o[out].cls || below(2)) continue;
      o[out].twin = j;
      memcpy(o[j].stride, o[out].stride, sizeof o[j].stride);
      o[j].low = o[out].low, o[j].high = o[out].high;
    }
}

/* Where the operands are, and what is there; false: some are too far apart. */
static bool place(problem *p) {
  for (int j = 0; j < p->count; j++) {
    operand *o = &p->o[j];
    const i64 size = o->type.bits / 8, span = o->low + o->high;
    if (span > REGION - 64 * 16) return false;
    /* against the page after, against the page before, or so many elements from there */
    if (o->cls == 'i') continue;
    const int where = below(4);
    const i64 start = where == 0 ? REGION - span : where == 1 ? 0 : (p->turn + below(3)) % 17 * size;
    o->region = regions[j];
    o->first = o->region + start + o->low;
    if (o->twin >= 0) o->region = p->o[o->twin].region, o->first = p->o[o->twin].first;
    else for (i64 b = 0; b + size <= span; b += size) fill(o->region + start + b, o->type);
  }
  return true;
}

/* The outputs' memory as it has to be, in `expected`. */
static void expect(const problem *p) {
  for (int j = p->n_in; j < p->count; j++) {
    const operand *o = &p->o[j];
    const i64 size = o->type.bits / 8;
    memcpy(expected[j], o->region, REGION);
    for (i64 i = 0; i < p->total; i++)
      memcpy(expected[j] + (o->first - o->region) + offset_of(o, p->rank, p->n, i), o->wanted + i * size, (size_t)size);
  }
}

/* The kernel's arguments. */
static void pack_arguments(const problem *p, u64 *w) {
  const kernel *k = p->k;
  i64 turned = 0; /* bytes of what is tiled: up to 16, tiles are 32 x 64, else 32 x 32 */
  for (int j = 0; j < p->count; j++) turned += k->classes[j] == 't' ? p->o[j].type.bits / 8 : 0;
  const i64 *n = p->n, side = turned <= 16 ? 64 : 32, columns = k->slot ? n[1] : (n[1] + side - 1) / side;
  const i64 row_items = k->slot ? (n[0] + k->slot - 1 + k->slot - 1) / k->slot : (n[0] + 31) / 32;
  u64 flags = (u64)(p->turn % 2);
  i64 slots = p->total == 0 ? 0 : row_items;
  for (int d = 1; d < p->rank; d++) slots *= d == 1 ? columns : n[d];
  for (int j = 0; j < p->count; j++, w++) {
    const operand *o = &p->o[j];
    if (o->is_value) memcpy(w, o->first, o->type.bits / 8), flags |= 256ull << j;
    else *w = (u64)(uintptr_t)o->first;
  }
  *w++ = (u64)slots;
  *w++ = (u64)row_items;
  *w++ = flags;
  *w++ = (u64)p->rank;
  for (int d = 0; d < p->rank; d++) w[d] = (u64)n[d];
  w += k->room;
  for (int j = 0; j < p->count; j++, w += k->room)
    for (int d = 0; d < p->rank; d++) w[d] = (u64)p->o[j].stride[d];
  for (int d = 0; d < p->rank; d++)
    magic(w + 2 * d, (u64)(d == 0 ? row_items : d == 1 ? columns : n[d]), k->index_bits == 32 ? 31 : 63);
  w += 2 * k->room;
  for (int i = 0; i < p->n_params; i++) *w++ = k->params[i];
  if (!has_indices(k)) return;
  const double count = (double)p->total; /* the last parameter: how many there are */
  if (p->o[1].type.code == kDLInt || p->o[1].type.code == kDLUInt) w[-1] = (u64)p->total;
  else memcpy(w - 1, &count, sizeof count);
}

static bool check(const kernel *k, int turn) {
  static const int thread_counts[] = {1, 32, 64, 256};
  static u64 words[4096];
  problem p = {};
  p.k = k;
  p.turn = turn;
  p.count = (int)strlen(k->classes);
  p.n_in = p.count - k->n_out;
  p.n_params = k->words - (p.count * (1 + k->room) + 4 + 3 * k->room);
  if (p.n_params < 0 || p.n_params > MAX_PARAMS) return printf("# %s: %d words of arguments\n", k->name, k->words), false;
  choose_extents(&p);
  choose_layouts(&p);
  choose_twins(&p);
  if (!place(&p)) return true;
  if (has_indices(k) ? !compute_of_indices(k, p.o, p.rank, p.n, p.total, p.origin, p.n_params - 1)
                     : !compute(k, p.o, p.count, p.rank, p.n, p.total, p.n_params))
    return false;
  expect(&p);
  memset(words, 0, sizeof words);
  pack_arguments(&p, words);
  const int blocks = 1 + below(3), threads = thread_counts[below(4)];
  if (!launch(k, words, blocks, threads, (grid_order)(turn % 3))) return false;
  for (int j = p.n_in; j < p.count; j++) {
    if (!memcmp(p.o[j].region, expected[j], REGION)) continue;
    tell(k, p.o, p.count, p.rank, p.n, p.total, turn);
    return false;
  }
  return true;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  random_state = strtoull(argv[1], NULL, 0);
  const int problems = atoi(argv[2]);
  for (char *&region : regions) {
    char *all = (char *)mmap(NULL, REGION + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + PAGE, REGION, PROT_READ | PROT_WRITE)) return 2;
    region = all + PAGE;
  }
  for (char *&copy : expected) copy = (char *)malloc(REGION);
  for (char *&copy : packed) copy = (char *)malloc(REGION);
  int bad = 0, run = 0;
  for (const kernel &k : kernels)
    for (int turn = 0; turn < problems; turn++, run++) {
      if (check(&k, turn)) continue;
      bad++;
      break;
    }
  printf("%d problems, %d kernels, %d bad\n", run, (int)(sizeof kernels / sizeof *kernels), bad);
  return bad != 0;
}
