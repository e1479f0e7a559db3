/* SPDX-License-Identifier: Apache-2.0
 *
 * row_job.c: see row_job.h. */
#include "core/row/row_job.h"

#include "core/base/status.h"
#include "core/row/scan_op.h"

/* Elements of a tile or block that fit L1 with what is computed from them, half of that where elements are written or rows lie beyond the
 * cache; of a tile that takes no scratch. */
#define TILE 4096
#define BEYOND_CACHE (1 << 23) /* bytes of such a row */
#define TILE_DIRECT 262144
#define LONG_ROW 65536 /* elements of a row that is worth ending early */
#define TILE_BLOCK 8192 /* elements of a block without scratch that several stages read */
#define TILE_BYTES 65536 /* of such a block of bytes that one stage reads */
#define TILE_KEPT 32768 /* of such a block of a far row that is kept in the output: in L2 until it is reduced */
#define TILE_SEARCHED 131072 /* of such a block that is searched */
#define MAX_ROWS 1024 /* of a tile */
#define SLACK 1024    /* of the scratch, where arrays begin at multiples of 16 bytes; and the places of QN_ROW_FOUND elements */
#define SLICE_PICOSECONDS 1000000 /* the least work that is worth a slice where threads are awake */
#define MOST_SLICES 64
#define SLICES_A_TILE 4 /* that a tile is worth, where rows are cut in more than two: each costs some 30 ns */
/* Estimated picoseconds of an element that is computed, scanned, interpreted, or combined (for each byte); and of a row, for each stage. */
#define COMPUTED 100
#define SCANNED 250
#define INTERPRETED 2000
#define COMBINED_BYTE 6
#define OF_ROW 500

/* Elements along dimensions [first, last) of the nest. */
static int64_t product(const qn_nest *nest, int32_t first, int32_t last) {
  int64_t n = 1;
  for (int32_t d = first; d < last; d++) n *= nest->n[d];
  return n;
}

static int32_t log2_up(int64_t n) {
  int32_t bits = 0;
  while (bits < 62 && (INT64_C(1) << bits) < n) bits++;
  return bits;
}

/* Whether an output holds one value for each row. */
static int is_value(const qn_row_program *program, int32_t output) {
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    for (int32_t k = 0; k < stage->n_out && stage->is_row; k++)
      if (stage->values[stage->n_in + k] == QN_ROW_OUTPUT + output) return 1;
  }
  return 0;
}

static int writes_elements(const qn_row_program *program, const qn_row_job *job) {
  for (int32_t k = 0; k < job->n_out; k++)
    if (!is_value(program, k)) return 1;
  return 0;
}

static void set_direct(const qn_row_program *program, qn_row_job *job) {
  const qn_nest *nest = job->nest;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    const int64_t size = job->size[k];
    job->direct[k] = nest->n_joined == 0 || (nest->n_joined == 1 && nest->stride[k][0] == size);
    if (k >= job->n_in && is_value(program, k - job->n_in))
      job->direct[k] = nest->rank == nest->n_reduced || nest->stride[k][nest->n_reduced] == size;
  }
}

/* The dtype of operand i of a stage's kernel; of a stage without a kernel the accumulator's. */
static uint8_t kernel_dtype_of(const qn_row_stage *stage, int32_t i) {
  return stage->variant ? stage->variant->dtypes[i] : stage->reduces[0].by->dtype;
}

/* Whether the kept value may lie in the output's place until the last stage reads it. */
static int may_keep(const qn_row_program *program, const qn_row_job *job) {
  if (!program->kept) return 0;
  const qn_row_stage *last = &program->stages[program->n_stages - 1];
  return qn_row_is_direct(job, job->n_in, last->variant->dtypes[last->n_in]);
}

static int runs(const qn_row_program *program, const qn_row_job *job, int32_t i) {
  if (!program->kept || i + 2 < program->n_stages) return 1;
  return program->stages[i].is_again ? !job->is_kept : job->is_kept;
}

/* Scratch bytes for each element of the scans that run before a stage; with portions, of the largest one, since scans reuse the blocks of
 * the scan before. Adds to *whole the bytes of the scanned elements. */
static int32_t bytes_of_feeders(const qn_row_program *program, const qn_row_job *job, const qn_row_stage *of, int32_t *whole) {
  int32_t all = 0, most = 0;
  for (int32_t s = 0; s < program->n_stages; s++) {
    const qn_row_stage *stage = &program->stages[s];
    if (!(of->feeders >> s & 1)) continue;
    int32_t bytes = 0;
    *whole += qn_dtype_infos[stage->scan->scan->dtype].size;
    if (!stage->variant) *whole += qn_row_bytes(job, stage->scan->from, stage->scan->scan->dtype);
    if (stage->steps && !job->kernel[s]) bytes += stage->steps->temp_bytes;
    for (int32_t i = 0; i < stage->n_in; i++)
      if (stage->values[i] < QN_ROW_OUTPUT) bytes += qn_row_bytes(job, stage->values[i], kernel_dtype_of(stage, i));
    all += bytes;
    if (bytes > most) most = bytes;
  }
  return job->portion ? most : all;
}

/* Scratch bytes for each element of a tile, for blocks of inputs, outputs and temporaries: the sum over the stages, or, if is_each or the
 * program has scans, the maximum, since a stage reuses the blocks of the stage before. With portions, blocks of what is neither reduced
 * nor scanned have the elements of a portion only; the rest counts in full. */
static int32_t bytes_an_element(const qn_row_program *program, const qn_row_job *job, int is_each) {
  int32_t bytes = 0, most = 0, reduction = 0;
  const int32_t portions = job->portion ? (int32_t)(QN_ROW_CHUNK / job->portion) : 1;
  for (int32_t s = 0; s < program->n_stages; s++) {
    const qn_row_stage *stage = &program->stages[s];
    if (stage->is_row || stage->scan || !runs(program, job, s)) continue;
    if (job->fused[s]) {
      reduction += stage->n_reduces;
      continue;
    }
    if (is_each || program->n_scans) bytes = 0;
    int32_t reduced = 0;
    const int32_t of_feeders = stage->feeders ? bytes_of_feeders(program, job, stage, &reduced) : 0;
    if (stage->steps && !job->kernel[s]) bytes += stage->steps->temp_bytes;
    for (int32_t i = 0; i < stage->n_in + stage->n_out; i++) {
      const uint8_t value = stage->values[i];
      if (value < QN_ROW_OUTPUT)
        bytes += qn_row_bytes(job, value, kernel_dtype_of(stage, i));
      else if (value < QN_ROW_VALUE)
        bytes += stage->steps && !job->kernel[s] ? job->size[job->n_in + value - QN_ROW_OUTPUT] + qn_dtype_infos[kernel_dtype_of(stage, i)].size
                              : qn_row_bytes(job, job->n_in + value - QN_ROW_OUTPUT, kernel_dtype_of(stage, i));
      else if (value >= QN_ROW_TEMP && i >= stage->n_in && !(value == program->kept && job->is_kept == 1))
        reduced += qn_dtype_infos[kernel_dtype_of(stage, i)].size;
    }
    for (int32_t i = 0; i < stage->n_reduces; i++, reduction++)
      for (int32_t p = 0; p < stage->reduces[i].by->n_parts; p++) {
        const uint8_t value = qn_row_from(&stage->reduces[i], p);
        if (value == QN_ROW_INDEX && stage->reduces[i].by->finds) continue; /* few: SLACK */
        if (value < QN_ROW_OUTPUT && !job->narrow[reduction]) reduced += qn_row_bytes(job, value, qn_reducer_dtype(stage->reduces[i].by, p));
      }
    if (!job->portion) bytes += of_feeders;
    else if (bytes < of_feeders) bytes = of_feeders;
    bytes = (bytes + portions - 1) / portions + reduced;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* The variant that reduces a tensor of a narrower dtype without a conversion before it; NULL: there is none. */
static const qn_variant *narrow_variant(const qn_row_job *job, const qn_row_reduce *reduce) {
  if (reduce->by->n_parts != 1 || reduce->from >= job->n_in || !job->direct[reduce->from] || job->row < QN_ROW_LANES) return NULL;
  return reduce->by->narrow[job->dtype[reduce->from]];
}

/* Whether a stage's kernel combines its elements: it takes inputs as they lie. Short rows are combined more quickly by the kernels that join. */
static int is_fused(const qn_row_job *job, int32_t at) {
  const qn_row_stage *stage = &job->program->stages[at];
  if (!stage->fuses || !job->kernel[at] || job->row < (stage->reduces[0].by->joins ? 8 * QN_ROW_LANES : QN_ROW_LANES)) return 0;
  for (int32_t i = 0; i < stage->n_in; i++) {
    const uint8_t value = stage->values[i];
    if (value < QN_ROW_OUTPUT && (value == QN_ROW_INDEX || !qn_row_is_direct(job, value, stage->variant->dtypes[i]))) return 0;
  }
  return 1;
}

/* The number of stages that read elements. */
static int32_t n_readers(const qn_row_program *program, const qn_row_job *job) {
  int32_t n = 0;
  for (int32_t i = 0; i < program->n_stages; i++) n += !program->stages[i].is_row && runs(program, job, i);
  return n;
}

static quern_status set_kernels(const qn_row_program *program, qn_row_job *job) {
  int32_t at = 0;
  qn_assert(program->n_stages <= QN_ROW_MAX_STAGES);
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    job->kernel[i] = stage->steps ? stage->steps->kernel(stage->steps) : stage->variant ? qn_job_kernel(stage->variant, NULL) : NULL;
    job->fused[i] = (uint8_t)is_fused(job, i);
    if (stage->scan) {
      const struct qn_reducer *by = stage->scan->scan->by;
      if (by) by->steps->kernel(by->steps); /* requests it */
      job->scan[i] = qn_job_kernel(stage->scan->scan->rows, NULL);
    }
    for (int32_t r = 0; r < stage->n_reduces; r++, at++) {
      const qn_row_steps *steps = stage->reduces[r].by->steps;
      qn_assert(at < QN_ROW_MAX_REDUCES);
      if (steps) steps->kernel(steps); /* requests it */
      job->inner[at] = qn_job_kernel(stage->reduces[r].by->inner, NULL);
      job->both[at] = qn_job_kernel(stage->reduces[r].by->both, NULL);
      const qn_variant *narrow = narrow_variant(job, &stage->reduces[r]);
      job->narrow[at] = narrow ? qn_job_kernel(narrow, NULL) : NULL;
    }
  }
  return QUERN_OK;
}

/* Scratch bytes for the single values of interpreted stages. */
static int32_t bytes_of_steps(const qn_row_program *program) {
  int32_t bytes = 0;
  for (int32_t i = 0; i < program->n_stages; i++)
    if (program->stages[i].steps) bytes += 8 * program->stages[i].steps->n_ones;
  return bytes;
}

/* Scratch bytes for each row of a tile: row values, those that are stored, temporaries of interpreted stages. */
static int32_t bytes_a_row(const qn_row_program *program, const qn_row_job *job) {
  int32_t bytes = 0;
  for (int32_t i = 0; i < program->n_stages; i++)
    if (program->stages[i].steps && program->stages[i].is_row) bytes += program->stages[i].steps->temp_bytes;
  for (int32_t i = 0; i < program->n_stages; i++)
    if (qn_row_picks(&program->stages[i])) bytes += QN_ROW_PICK_BYTES;
  return bytes + QN_DTYPE_MAX_BYTES * (program->n_rows + 2 * job->n_out) + program->n_scans * QN_ROW_CARRIES;
}

/* The most bytes that the nodes of a stage's reductions have, one node of each. */
static int32_t bytes_of_nodes(const qn_row_program *program) {
  int32_t most = 0;
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    int32_t bytes = 0;
    for (int32_t r = 0; r < stage->n_reduces; r++)
      for (int32_t p = 0; p < stage->reduces[r].by->n_parts; p++)
        bytes += QN_ROW_LANES * qn_dtype_infos[qn_reducer_dtype(stage->reduces[r].by, p)].size;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* ---- Columns ---- */

#define MOST_COLUMNS 4096
#define FEWEST_COLUMNS 16 /* of a tile that is not all of them */
#define WORTH_COLUMNS 256 /* of a tile that is worth a slice */
#define FEWEST_PARTS 4    /* in which rows are cut */
#define WIDE_BYTES (1 << 18) /* of an input that is worth a wide tile's scratch */

/* The one stage of elements of a program that has one reduction, of one input; else -1. */
static int32_t only_stage(const qn_row_program *program) {
  int32_t found = -1;
  if (program->kept) return -1;
  for (int32_t s = 0; s < program->n_stages; s++) {
    const qn_row_stage *stage = &program->stages[s];
    if (stage->is_row) continue;
    if (found >= 0 || stage->n_reduces != 1 || !stage->reduces[0].by->columns) return -1;
    if (!stage->variant && stage->reduces[0].from != QN_ROW_INPUT) return -1;
    if (stage->variant && (stage->steps || stage->n_in != 1 || stage->n_out != 1 || stage->values[0] != QN_ROW_INPUT)) return -1;
    found = s;
  }
  return found;
}

/* The most nodes of n successive ones that wait for their right neighbours at a time. */
static int32_t waiting(int64_t n) {
  int32_t most = 0;
  while (n >> (most + 1)) most++;
  return most;
}

/* Whether more scratch makes wider tiles of a plan, or serves slices that run parts of one, of an input that is worth it. */
static int may_widen(const qn_row_job *job) {
  const qn_nest *nest = job->nest;
  const int64_t size = job->size[0], step = nest->stride[0][0], further = job->row * job->n_further * size;
  const int64_t n = nest->n[nest->n_reduced - !job->lanes], bytes = job->lanes ? further * n : further;
  if (bytes < WIDE_BYTES) return 0;
  if (job->most_slices > 1) return 1;
  if (!job->lanes) return job->block < n || job->folded < QN_ROW_LANES;
  return job->rows < n || (job->lanes < QN_ROW_LANES && step == n * size);
}

#define ACROSS 128             /* columns of a tile that goes across; twice as many where rows are shorter than a chunk */
#define FEWEST_ACROSS 64       /* fewer are quicker from transposed blocks */
#define FAR_ROWS (1 << 20)     /* bytes of rows beyond a cache that is quick in any order */
#define FEWEST_AT_ONCE 64      /* bytes of a row that is no part of a wider one */
#define LINED_BYTES 512        /* of adjacent rows which are quicker in the order of memory, if they are more than */
#define LINED_ROWS 128

/* Whether a kernel may reduce all rows of a tile at once. */
static int are_at_once(const qn_row_job *job, const qn_reducer *by, int may_be_far) {
  const qn_nest *nest = job->nest;
  const int64_t size = job->size[0], bytes = nest->n[nest->n_reduced] * size, step = qn_tensor_magnitude(nest->stride[0][0]);
  if (!by->at_once || job->row > QN_ROW_MOST_AT_ONCE || job->n_further > 1) return 0;
  if (step == bytes && bytes < FEWEST_AT_ONCE) return 0;
  return may_be_far || job->row <= QN_ROW_LANES || job->row * step < FAR_ROWS;
}

/* Plans the path COLUMNS for `scratch` bytes and, if there are enough columns, at least `parts` tiles, if the program and the nest allow it. Returns
 * whether they do. */
static int plan_columns(qn_row_job *job, int64_t scratch, int64_t parts) {
  const qn_row_program *program = job->program;
  const qn_nest *nest = job->nest;
  const int32_t at = only_stage(program), kept = nest->n_reduced, fold = kept - 1;
  if (at < 0 || job->n_in != 1 || nest->n_joined != 1 || job->count == 0) return 0;
  const int64_t size = job->size[0], step = nest->stride[0][0];
  const int has_kept = nest->rank > kept && nest->stride[0][kept] == size;
  const int has_fold = !has_kept && fold >= nest->n_joined && nest->stride[0][fold] == size;
  if (step == size || step == 0 || !(has_kept || has_fold)) return 0;
  const qn_row_stage *stage = &program->stages[at];
  const qn_reducer *by = stage->reduces[0].by;
  const uint8_t in_dtype = stage->variant ? stage->variant->dtypes[0] : by->dtype;
  const int64_t width = qn_dtype_infos[by->dtype].size;
  const int64_t loaded = (job->dtype[0] == in_dtype ? 0 : qn_dtype_infos[in_dtype].size) + (stage->variant ? width : 0);
  const int64_t kept_values = QN_DTYPE_MAX_BYTES * program->n_rows, stored = bytes_a_row(program, job) - kept_values; /* stored after nodes are gone */
  const int64_t room = scratch - SLACK - bytes_of_steps(program);
  const int64_t most = scratch == QN_ROW_SCRATCH ? MOST_COLUMNS : scratch;
  int32_t levels = 1 + (loaded > 0) + waiting(qn_ceil_div(job->row, QN_ROW_CHUNK));
  for (int32_t d = nest->n_joined; d < (has_kept ? kept : fold); d++) levels += waiting(nest->n[d]);
  job->piece = loaded ? 4 : QN_ROW_LANES;
  job->lanes = 1;
  job->n_levels = levels + 4;
  job->is_at_once = 0;
  const int is_lined = job->row > LINED_ROWS && has_kept && step == nest->n[kept] * size && step <= LINED_BYTES;
  const int is_beyond = by->joins && job->row > QN_ROW_LANES && product(nest, 0, nest->rank) * size > 2 * FAR_ROWS;
  job->is_narrow = !stage->variant && by->narrow_columns[job->dtype[0]];
  if (has_kept && (job->is_narrow || (!is_lined && !is_beyond)) && are_at_once(job, by, job->is_narrow)) {
    const int64_t n = nest->n[kept], block = job->is_narrow ? 0 : job->row * loaded, columns = room / ((block > stored ? block : stored) + kept_values);
    if (columns >= ACROSS || columns >= n) {
      const int64_t even = (qn_ceil_div(n, qn_ceil_div(n, columns)) + 15) / 16 * 16;
      job->rows = even <= columns ? even : columns;
      if (job->rows > n) job->rows = n;
      job->piece = (uint16_t)job->row;
      job->is_at_once = 1;
      job->path = QN_ROW_COLUMNS;
      return 1;
    }
  }
  if (has_kept) {
    int64_t bytes = width * job->n_levels + job->piece * loaded;
    const int64_t n = nest->n[kept];
    int64_t columns = room / ((bytes > stored ? bytes : stored) + kept_values);
    int32_t lanes = QN_ROW_LANES, n_levels = levels;
    for (; lanes > 1 && step == n * size && parts == 1; lanes /= 2, n_levels++) {
      bytes = width * n_levels + job->piece * loaded;
      const int64_t of_lanes = lanes * bytes > stored ? lanes * bytes : stored;
      if (n * (of_lanes + kept_values) > room || n * lanes > most) continue;
      job->lanes = (uint8_t)lanes;
      job->n_levels = n_levels;
      columns = n;
      break;
    }
    if (columns < FEWEST_COLUMNS && columns < n) return 0;
    if (columns > most) columns = most;
    const int64_t fewest = qn_ceil_div(n, columns), tiles = fewest > parts ? fewest : parts, even = qn_ceil_div(n, tiles);
    job->rows = tiles == 1 ? n : even + 15 <= columns ? (even + 15) / 16 * 16 : columns;
  } else {
    const int64_t nodes = (waiting(nest->n[fold]) + 2) * QN_ROW_LANES * width + kept_values + stored;
    const int64_t n = nest->n[fold], columns = (room - nodes) / (width * (levels + 1) + job->piece * loaded);
    if (columns < FEWEST_COLUMNS) return 0;
    job->lanes = 0;
    job->folded = QN_ROW_LANES;
    job->n_levels = levels;
    job->rows = job->block = 1;
    while (job->block * 2 <= columns && job->block < n && job->block < most) job->block *= 2;
    while (job->folded > 1 && (step != n * size || job->folded * n > columns)) job->folded /= 2;
    if (job->folded > 1) job->block = n;
    while (job->folded == 1 && parts > 1 && job->block > WORTH_COLUMNS && qn_ceil_div(n, job->block) < 2 * parts) job->block /= 2;
    if (job->block > n) job->block = n; /* one tile */
  }
  job->path = QN_ROW_COLUMNS;
  job->may_widen = (uint8_t)(loaded == 0 && may_widen(job)); /* converted elements are in blocks, which are best in L1 */
  return 1;
}

/* Notes the dtype that a stage takes operand k as: all stages have to agree, for all that is converted. Returns whether they do so far. */
static int take_as(qn_row_job *job, int32_t k, uint8_t dtype, uint32_t *seen) {
  const uint16_t bit = (uint16_t)(1u << k), is_converted = job->dtype[k] != dtype;
  const int agrees = (!(*seen & bit) || !(job->converted & bit) == !is_converted) && (!is_converted || !job->converted || job->as == dtype);
  *seen |= bit;
  if (!is_converted) return agrees;
  job->converted |= bit;
  job->as = dtype;
  return agrees;
}

/* Whether a stage of elements runs on rows of neighbouring elements. */
static int goes_across(qn_row_job *job, const qn_row_stage *stage, uint32_t *seen) {
  if (stage->steps || stage->scan) return 0;
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_row_reduce *reduce = &stage->reduces[r];
    if (!reduce->by->columns || reduce->by->n_parts > 1) return 0;
    if (reduce->from < QN_ROW_TEMP && (reduce->from >= job->n_in || !take_as(job, reduce->from, reduce->by->dtype, seen))) return 0;
  }
  for (int32_t i = 0; stage->variant && i < stage->n_in + stage->n_out; i++) {
    const uint8_t value = stage->values[i];
    const int32_t k = value < QN_ROW_OUTPUT ? value : job->n_in + value - QN_ROW_OUTPUT;
    if (value == QN_ROW_INDEX || (value < QN_ROW_VALUE && !take_as(job, k, stage->variant->dtypes[i], seen))) return 0;
    if (value >= QN_ROW_VALUE && value < QN_ROW_TEMP && !stage->across) return 0;
    if (value >= QN_ROW_TEMP && value == job->program->kept && !take_as(job, job->n_in, stage->variant->dtypes[i], seen)) return 0;
  }
  return 1;
}

#define ELEMENTS_ACROSS 8192 /* of a tile whose rows are reduced at once */
#define MOST_ACROSS 1024     /* columns of it */

/* Plans the path COLUMNS for programs of several stages of elements, for `scratch` bytes, if the nest allows it. Returns whether it does. */
static int plan_across(const qn_row_program *program, qn_row_job *job, int64_t scratch) {
  const qn_nest *nest = job->nest;
  const int32_t kept = nest->n_reduced;
  int64_t width = 0, blocks = 0, temp = 0;
  uint32_t seen = 0;
  int32_t n_temps = 0;
  if (nest->n_joined != 1 || job->n_further != 1 || nest->rank <= kept || job->count == 0 || program->n_scans) return 0;
  const int64_t n = nest->n[kept];
  int may = n >= FEWEST_ACROSS, is_at_once = n >= QN_ROW_LANES;
  job->converted = job->lends = 0;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    const int64_t step = nest->stride[k][0];
    if (nest->stride[k][kept] != job->size[k] || step == job->size[k] || (k < job->n_in && step == 0)) return 0;
  }
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    if (qn_row_picks(stage) || (stage->is_row && stage->steps)) return 0;
    if (stage->is_row || !runs(program, job, i)) continue;
    if (!goes_across(job, stage, &seen)) return 0;
    int64_t of_stage = 0;
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      const int64_t size = qn_dtype_infos[stage->reduces[r].by->dtype].size;
      if (size > width) width = size;
      if (stage->reduces[r].from >= QN_ROW_TEMP && stage->reduces[r].from != program->kept) of_stage += job->row * size;
      is_at_once = is_at_once && are_at_once(job, stage->reduces[r].by, 0);
    }
    may = may && stage->n_reduces <= 1;
    if (of_stage > temp) temp = of_stage;
    n_temps = stage->n_reduces > n_temps ? stage->n_reduces : n_temps;
  }
  for (int32_t k = 0; k < nest->n_operands; k++) {
    const int64_t size = qn_dtype_infos[job->as].size;
    if (!(job->converted >> k & 1)) continue;
    if (k >= job->n_in && size >= width && n_temps == 1 && !program->kept) job->lends = (uint8_t)k;
    blocks += job->row * size;
  }
  if (!job->lends) blocks += temp;
  may = may && !job->converted && scratch == QN_ROW_SCRATCH && writes_elements(program, job);
  const int64_t room = scratch - SLACK, values = bytes_a_row(program, job), wide = ELEMENTS_ACROSS / job->row;
  const int64_t wanted = wide > MOST_ACROSS ? MOST_ACROSS : wide > ACROSS ? wide : ACROSS;
  int64_t columns = is_at_once ? room / (blocks + values) / 16 * 16 : 0;
  job->is_at_once = columns >= n || columns >= (may ? ACROSS : FEWEST_ACROSS);
  job->n_levels = 1 + waiting(qn_ceil_div(job->row, QN_ROW_CHUNK)) + 4;
  job->piece = job->is_at_once ? (uint16_t)job->row : QN_ROW_LANES;
  if (job->is_at_once) {
    columns = columns < wanted ? columns : wanted;
  } else {
    const int64_t most = job->row < QN_ROW_CHUNK ? 2 * ACROSS : ACROSS;
    columns = room / (width * (job->n_levels + QN_ROW_LANES) + values) / 16 * 16;
    if (!may || columns < FEWEST_COLUMNS) return 0;
    columns = columns < most ? columns : most;
  }
  for (int32_t i = 0; i < program->n_stages; i++)
    if (program->stages[i].across) job->kernel[i] = qn_job_kernel(program->stages[i].across, NULL);
  const int64_t even = (qn_ceil_div(n, qn_ceil_div(n, columns)) + 15) / 16 * 16;
  job->rows = even < n ? even : n;
  job->lanes = 1;
  job->is_kept = program->kept != 0;
  job->is_across = 1;
  job->has_parts = 0;
  job->portion = 0;
  job->path = QN_ROW_COLUMNS;
  return 1;
}

/* Whether it does with more scratch. */
static int goes_across_wide(const qn_row_program *program, const qn_row_job *job) {
  qn_row_job wide = *job;
  return plan_across(program, &wide, QN_ROW_WIDE_SCRATCH);
}

void qn_row_widen(qn_row_job *job, int32_t n_slices) {
  const qn_nest *nest = job->nest;
  if (job->path != QN_ROW_COLUMNS) {
    job->is_kept = job->program->kept != 0;
    plan_across(job->program, job, QN_ROW_WIDE_SCRATCH);
    return;
  }
  const int32_t kept = nest->n_reduced, first = kept + (job->lanes > 0);
  const int64_t others = first < nest->rank ? product(nest, first, nest->rank) : 1, wanted = qn_ceil_div(n_slices, others);
  int64_t parts = wanted, scratch = QN_ROW_WIDE_SCRATCH;
  if (job->lanes && wanted > 1) {
    const int64_t n = nest->n[kept], worth = n / WORTH_COLUMNS, node = QN_ROW_LANES * n * qn_dtype_infos[job->dtype[0]].size;
    if (parts > worth) parts = worth;
    if (parts < 1) parts = 1;
    if (parts < wanted && FEWEST_PARTS * node <= scratch / 2) { /* the rows are cut: half of the scratch is for the parts' nodes */
      parts = 1;
      scratch /= 2;
    }
  }
  plan_columns(job, scratch, parts);
}

/* ---- The plan ---- */

/* The most elements of a row that the kernels walk by themselves: the levels of the tree on their stack. ORDER left: reduce_inner.c.in,
 * reduce_lanes.c.in, reduce_parts.c.in */
static int64_t longest_row(const qn_row_program *program) {
  for (int32_t i = 0; i < program->n_stages; i++)
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++)
      if (program->stages[i].reduces[r].by->n_parts > 1) return (int64_t)1 << 20;
  return (int64_t)1 << 24;
}

/* Whether rows lie beyond the cache. */
static int is_far(const qn_row_job *job) { return job->row * job->size[0] > BEYOND_CACHE; }

/* The most elements of a block without scratch. A reduction that searches reads part of a block twice: a large one costs less. */
static int64_t most_block(const qn_row_program *program, const qn_row_job *job) {
  if (job->n_in == 1 && n_readers(program, job) == 1 && job->size[0] == 1) return TILE_BYTES;
  if (job->is_kept == 1 && is_far(job)) return TILE_KEPT;
  for (int32_t i = 0; i < program->n_stages; i++)
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++)
      if (!program->stages[i].reduces[r].by->finds) return TILE_BLOCK;
  return TILE_SEARCHED;
}

/* Rows of a tile in BLOCKS with adjacent elements: the most, and the fewest. */
#define MOST_BESIDE 16
#define BESIDE 8

/* Whether rows, or their pieces along the innermost dimension, lie beside each other, so that some are taken together, chunk by chunk; a node
 * has all its lanes then. */
static int are_beside(const qn_row_program *program, const qn_row_job *job) {
  const qn_nest *nest = job->nest;
  const int32_t kept = nest->n_reduced;
  int are = 0;
  if (nest->n_joined < 1 || nest->n_joined > 2 || job->n_further != 1 || nest->rank <= kept || nest->n[kept] < BESIDE) return 0;
  if (job->row < QN_ROW_LANES || (job->row % QN_ROW_CHUNK && job->row % QN_ROW_CHUNK < QN_ROW_LANES)) return 0;
  for (int32_t i = 0; i < program->n_stages; i++)
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++)
      if (program->stages[i].reduces[r].by->n_parts > 1) return 0;
  for (int32_t k = 0; k < job->n_in; k++) {
    const int64_t size = job->size[k], inner = nest->stride[k][0], step = nest->stride[k][kept];
    are |= nest->n_joined == 1 ? step == size && inner > size : inner == size && step == size * nest->n[0];
  }
  return are;
}

static int32_t levels_of_blocks(const qn_row_job *job) { return 1 + log2_up(qn_ceil_div(job->row, QN_ROW_CHUNK)); }

/* Bytes of scratch that BLOCKS takes for `rows` rows at a time, in chunks. */
static int64_t bytes_of_blocks(const qn_row_program *program, const qn_row_job *job, int64_t rows) {
  return rows * (bytes_of_nodes(program) * levels_of_blocks(job) + bytes_a_row(program, job) + (int64_t)bytes_an_element(program, job, 1) * QN_ROW_CHUNK);
}

/* Plans BLOCKS of a chunk of several rows, if the program, the nest and the scratch allow it. Returns whether they do. */
static int plan_beside(const qn_row_program *program, qn_row_job *job) {
  const uint8_t kept = job->is_kept;
  if (!are_beside(program, job)) return 0;
  job->is_kept = may_keep(program, job) ? 1 : 0;
  const int64_t room = QN_ROW_SCRATCH - SLACK - bytes_of_steps(program);
  for (job->rows = MOST_BESIDE; job->rows >= BESIDE; job->rows /= 2) {
    job->portion = 0;
    if (bytes_of_blocks(program, job, job->rows) <= room) break;
    if (program->n_scans) continue; /* what is scanned is a block as a whole */
    for (job->portion = QN_ROW_CHUNK / 2; job->portion > QN_ROW_CHUNK / 8; job->portion /= 2)
      if (bytes_of_blocks(program, job, job->rows) <= room) break;
    if (bytes_of_blocks(program, job, job->rows) <= room) break;
  }
  if (job->rows < BESIDE) {
    job->is_kept = kept;
    job->portion = 0;
    return 0;
  }
  job->path = QN_ROW_BLOCKS;
  job->block = job->row < QN_ROW_CHUNK ? job->row : QN_ROW_CHUNK;
  job->n_levels = levels_of_blocks(job);
  if (job->portion >= job->block) job->portion = 0;
  return 1;
}

/* Whether a long row may be decided before its end. */
static int may_end_early(const qn_row_program *program) {
  for (int32_t i = 0; i < program->n_stages; i++)
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++)
      if (program->stages[i].reduces[r].by->has_absorbing) return 1;
  return 0;
}

static int is_interpreted(const qn_row_steps *steps) { return steps && !steps->kernel(steps); }

/* The work of a row, by an estimate. */
static double picoseconds_a_row(const qn_row_program *program, const qn_row_job *job) {
  int64_t of_row = 0, of_element = 0;
  for (int32_t s = 0; s < program->n_stages; s++) {
    const qn_row_stage *stage = &program->stages[s];
    of_row += OF_ROW;
    if (stage->is_row || !runs(program, job, s)) continue;
    if (stage->variant) of_element += stage->steps && !job->kernel[s] ? INTERPRETED : COMPUTED;
    if (stage->scan) of_element += SCANNED;
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      const qn_reducer *by = stage->reduces[r].by;
      for (int32_t p = 0; p < by->n_parts; p++) of_element += COMBINED_BYTE * qn_dtype_infos[qn_reducer_dtype(by, p)].size;
      if (is_interpreted(by->steps)) of_element += INTERPRETED;
    }
  }
  return (double)of_row + (double)of_element * (double)job->row * (double)job->n_further;
}

quern_status qn_row_plan(const qn_row_program *program, const char *op, const uint8_t *dtypes, const qn_nest *nest, int32_t n_in,
                         int64_t count, qn_row_job *job) {
  *job = (qn_row_job){.program = program, .nest = nest, .n_in = n_in, .n_out = nest->n_operands - n_in, .count = count};
  for (int32_t k = 0; k < nest->n_operands; k++) {
    job->dtype[k] = dtypes[k];
    job->size[k] = qn_dtype_infos[dtypes[k]].size;
  }
  job->row = product(nest, 0, nest->n_joined);
  set_direct(program, job);
  set_kernels(program, job);
  job->n_further = product(nest, nest->n_joined, nest->n_reduced);
  const int64_t n_rows = product(nest, nest->n_reduced, nest->rank);
  const int32_t values_bytes = bytes_a_row(program, job);
  const int picks_only = n_readers(program, job) == 0;
  const double slices = (double)n_rows * picoseconds_a_row(program, job) / SLICE_PICOSECONDS;
  job->most_slices = slices > MOST_SLICES ? MOST_SLICES : slices < 1 ? 1 : (int32_t)slices;
  job->is_kept = program->kept != 0;
  job->path = QN_ROW_WHOLE;
  const int has_columns = plan_columns(job, QN_ROW_SCRATCH, 1) || plan_across(program, job, QN_ROW_SCRATCH);
  if (!has_columns) job->may_widen = (uint8_t)goes_across_wide(program, job);
  const int64_t tile = writes_elements(program, job) || is_far(job) ? TILE / 2 : TILE;
  const int ends_early = job->row > LONG_ROW && may_end_early(program);
  if (may_keep(program, job)) job->is_kept = 1;
  else if (program->kept) job->is_kept = 2; /* in a block */
  int32_t bytes = bytes_an_element(program, job, 0) + (job->row < QN_ROW_LANES ? 8 : 0); /* short rows: a transposed block */
  const int64_t room = QN_ROW_SCRATCH - SLACK - bytes_of_steps(program); /* and the most rows in it: */
  const int64_t most = bytes > 0 && job->row > room ? 0 : room / (bytes * job->row + values_bytes);
  if (has_columns) {
    job->is_kept = program->kept != 0;
  } else if (picks_only) {
    job->rows = room / values_bytes < MAX_ROWS ? room / values_bytes : MAX_ROWS;
  } else if (bytes > 0 && most < BESIDE && plan_beside(program, job)) {
    /* all is planned */
  } else if (job->n_further == 1 && most > 0 && (bytes == 0 ? !ends_early && !(job->is_kept == 1 && is_far(job)) : job->row <= tile) && job->row <= longest_row(program)) {
    const int64_t wanted = (bytes ? tile : n_readers(program, job) > 1 ? TILE : TILE_DIRECT) / (job->row ? job->row : 1);
    job->rows = wanted < 1 ? 1 : wanted;
    if (job->rows > most) job->rows = most;
    if (job->rows > MAX_ROWS) job->rows = MAX_ROWS;
    const int32_t worth = job->most_slices / SLICES_A_TILE, tiles = worth > 2 ? worth : job->most_slices < 2 ? 1 : 2;
    if (job->rows > n_rows / tiles) job->rows = n_rows / tiles > 1 ? n_rows / tiles : 1;
    if (bytes == 0 && job->rows == 1 && !program->n_scans) {
      job->has_parts = 1;
      job->block = job->row;
      job->n_levels = 2;
    }
  } else {
    job->path = QN_ROW_BLOCKS;
    job->rows = 1;
    job->has_parts = !program->n_scans;
    job->is_kept = may_keep(program, job) ? 1 : 0;
    bytes = bytes_an_element(program, job, 1);
    job->n_levels = 2;
    for (int32_t d = nest->n_joined; d < nest->n_reduced; d++) job->n_levels += log2_up(nest->n[d]) + 1;
    job->block = job->row;
    for (int32_t levels = job->n_levels;;) {
      const int64_t nodes = (int64_t)bytes_of_nodes(program) * (levels + log2_up(qn_ceil_div(job->row, QN_ROW_CHUNK)) + 1);
      int64_t chunks = bytes ? (QN_ROW_SCRATCH - nodes - values_bytes - bytes_of_steps(program) - SLACK) / bytes / QN_ROW_CHUNK : INT64_MAX;
      if (chunks < 1 && job->portion != QN_ROW_CHUNK / 8) {
        job->portion = job->portion ? job->portion / 2 : QN_ROW_CHUNK / 2;
        bytes = bytes_an_element(program, job, 1);
        continue;
      }
      if (chunks < 1)
        return qn_status_fail(QUERN_E_LIMIT, "%s: more values at a time than a thread's stack holds", op);
      if (!bytes) {
        const int is_walked = bytes_of_nodes(program) == 0 || program->n_stages <= 2; /* the kernels themselves walk the row */
        if (is_walked && !ends_early && job->row <= longest_row(program)) break;
        chunks = most_block(program, job) / QN_ROW_CHUNK;
      }
      int64_t block = QN_ROW_CHUNK;
      while (!job->portion && block * 2 <= chunks * QN_ROW_CHUNK && block < (bytes ? tile : most_block(program, job))) block *= 2;
      if (block < job->row) job->block = block;
      job->n_levels += log2_up(qn_ceil_div(job->row, job->block)) + 1;
      break;
    }
  }
  return QUERN_OK;
}
