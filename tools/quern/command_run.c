/* SPDX-License-Identifier: Apache-2.0
 *
 * command_run.c: quern run: an expression over .npy files, on the CPU or on a CUDA device, where the arrays are moved there
 * and back. In order: the command line, the expression, names, the inputs' headers, shapes, the device, whether outputs can
 * be written; only then the inputs' data; outputs appear when all are computed. In place of an expression there may be the name
 * of an op; if its output is as large as values say, its inputs' data are read first. An output without a file is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "operands/binding.h"
#include "command_line.h"
#include "command_tables.h"
#include "commands.h"
#include "operands/device_arrays.h"
#include "files/inflate.h"
#include "operands/ndarray.h"
#include "operands/op_words.h"
#include "operands/print_array.h"
#include "say.h"

enum { MAX_REPEATS = 1000000 };

typedef struct run_request {
  const char *expression;
  word_list operands;
  spec_list specs;
  param_word params[OP_WORDS_PARAMS];
  int n_params;
  DLDevice device;
  int32_t jit, threads, repeats; /* repeats 0: not asked for */
  int explain, compress;
} run_request;

typedef struct run {
  quern_ctx *ctx;
  quern_op *op;
  const quern_op_info *info;
  int is_op; /* called by its name */
  op_words given;
  const operand_word *words[BINDING_MAX]; /* of the operands, in the same order */
  operand_word *printed; /* of outputs without a word on the command line: without a path */
  int n_printed;
  ndarray *arrays; /* the inputs, then the outputs; their tensors in the same order */
  DLTensor **tensors;
  int32_t n_in, n_out;
  quern_call call;
  device *device; /* NULL: the CPU */
  char *explanation;
  double median_s, to_device_ms, to_host_ms;
} run;

/* ---- The command line ---- */

static int take_jit(run_request *request, const char *value) {
  static const char *const modes[] = {"off", "sync", "async"};
  for (int k = 0; k < 3; k++) {
    if (strcmp(value, modes[k]) != 0) continue;
    request->jit = QUERN_JIT_OFF + k;
    return STATUS_GOOD;
  }
  return misuse(run_usage, "--jit %.40s: off, sync or async", value);
}

static int take_device(run_request *request, const char *value) {
  if (device_parse(value, &request->device)) return STATUS_GOOD;
  return misuse(run_usage, "--device %.40s: cpu, cuda or cuda:N", value);
}

static int take_param(run_request *request, const char *value) {
  char why[WHY_SIZE];
  param_word *param = &request->params[request->n_params];
  if (request->n_params == OP_WORDS_PARAMS) return misuse(run_usage, "more than %d parameters", OP_WORDS_PARAMS);
  if (!operand_parse_number(value, param->name, &param->value, why)) return misuse(run_usage, "--param %s", why);
  for (int k = 0; k < request->n_params; k++)
    if (strcmp(request->params[k].name, param->name) == 0)
      return misuse(run_usage, "--param %s is given twice", param->name);
  request->n_params++;
  return STATUS_GOOD;
}

static int take_word(run_request *request, const char *word) {
  operand_word operand;
  char why[WHY_SIZE];
  if (!request->expression) {
    request->expression = word;
    return STATUS_GOOD;
  }
  if (!operand_parse_file(word, &operand, why)) return misuse(run_usage, "%s", why);
  return word_list_add(&request->operands, &operand, run_usage);
}

static int read_request(run_request *request, int argc, char **argv) {
  command_line line = {.usage = run_usage, .argc = argc, .argv = argv};
  const char *value;
  int status = STATUS_GOOD, got;
  request->device = (DLDevice){kDLCPU, 0};
  while (status == STATUS_GOOD && (got = command_line_next(&line, run_options, &value)) != COMMAND_LINE_END) {
    switch (got) {
      case RUN_SPEC: status = spec_list_add(&request->specs, value) ? STATUS_GOOD : STATUS_FAILED; break;
      case RUN_PARAM: status = take_param(request, value); break;
      case RUN_JIT: status = take_jit(request, value); break;
      case RUN_THREADS:
        if (!operand_parse_count(value, 1, 9999, &request->threads))
          status = misuse(run_usage, "--threads %.40s: a number of 1 to 9999", value);
        break;
      case RUN_DEVICE: status = take_device(request, value); break;
      case RUN_REPEAT:
        if (!operand_parse_count(value, 1, MAX_REPEATS, &request->repeats))
          status = misuse(run_usage, "--repeat %.40s: a number of 1 to %d", value, MAX_REPEATS);
        break;
      case RUN_EXPLAIN: request->explain = 1; break;
      case RUN_COMPRESS:
        request->compress = 1;
        if (inflate_is_missing()) status = complain("--compress: %s", inflate_is_missing());
        break;
      case RUN_PROGRESS:
        if (!progress_choose(value)) status = misuse(run_usage, "--progress %.40s: auto, always or never", value);
        break;
      case COMMAND_LINE_WORD: status = take_word(request, value); break;
      default: status = STATUS_MISUSE;
    }
  }
  if (status == STATUS_GOOD && !request->expression)
    status = misuse(run_usage, "an expression is wanted, such as \"y = x * w\"");
  return status;
}

/* ---- Before anything is computed ---- */

/* Needs the inputs' shapes, if axes are given. */
static int bind_params(run *run) {
  int32_t ndim = 0;
  for (int32_t k = 0; k < run->n_in; k++)
    if (run->arrays[k].tensor.ndim > ndim) ndim = run->arrays[k].tensor.ndim;
  const int status = op_words_bind(run->info, run->is_op, ndim, &run->given);
  run->call = (quern_call){.size = sizeof run->call, .params = run->given.params, .n_params = run->given.n_params};
  return status;
}

/* Outputs that the command line says nothing of are printed. */
static int bind_printed(run *run) {
  const quern_op_info *info = run->info;
  run->printed = calloc((size_t)info->n_out, sizeof run->printed[0]);
  if (!run->printed) return complain("out of memory");
  for (int32_t k = info->n_in; k < info->n_in + info->n_out; k++) {
    operand_word *word = &run->printed[run->n_printed];
    if (run->words[k]) continue;
    snprintf(word->name, sizeof word->name, "%s", info->args[k].name ? info->args[k].name : "");
    run->words[k] = word;
    run->n_printed++;
  }
  return STATUS_GOOD;
}

static int is_dynamic(const run *run) { return run->info->op_class == QUERN_CLASS_DYNAMIC; }

/* The outputs' arrays, from the inputs' headers, or, measured, from their data. */
static int size_outputs(run *run, int is_measured) {
  DLTensor *const *in = run->tensors;
  const operand_word *const *words = run->words + run->n_in;
  quern_shape *shapes = calloc((size_t)run->n_out, sizeof shapes[0]);
  if (!shapes) return complain("out of memory");
  int status = STATUS_GOOD;
  for (int32_t k = 0; k < run->n_out && !status; k++) {
    shapes[k] = (quern_shape){.size = sizeof shapes[k], .device = {kDLCPU, 0}, .dtype = words[k]->dtype};
    if (words[k]->has_shape != (run->n_in == 0))
      status = words[k]->has_shape ? complain("%s: its shape follows from the inputs", words[k]->name)
                                   : complain("%s has no inputs: its output's dtype and shape are wanted, as in %s:f32[10]=FILE", run->info->name, words[k]->name);
    shapes[k].ndim = words[k]->ndim;
    memcpy(shapes[k].shape, words[k]->shape, sizeof words[k]->shape);
  }
  const int is_by_params = run->info->op_class == QUERN_CLASS_REDUCTION && run->is_op; /* of these the shape follows from them, too */
  if (!status && run->n_in &&
      (is_measured || is_by_params ? quern_op_measure(run->op, run->n_in, in, run->n_out, shapes, &run->call)
                                   : quern_op_infer(run->op, run->n_in, in, run->n_out, shapes)))
    status = complain_library();
  for (int32_t k = 0; k < run->n_out && !status && (is_measured || !is_dynamic(run)); k++) {
    ndarray *array = &run->arrays[run->n_in + k];
    if (!ndarray_infer(array, words[k], &shapes[k]) || (!words[k]->path && !print_array_fits(array))) status = STATUS_FAILED;
  }
  free(shapes);
  return status;
}

/* The op, and what it is called on: an ndarray for each operand. */
static int open_operands(run *run, const run_request *request) {
  const quern_options options = {.size = sizeof options, .jit = request->jit, .threads = request->threads};
  if (!(run->ctx = open_context(&options, &request->specs))) return STATUS_FAILED;
  int status = op_words_open(run->ctx, request->expression, &request->operands, &run->op, &run->is_op);
  if (status) return status;
  run->info = quern_op_describe(run->op);
  run->given.n_given = request->n_params;
  memcpy(run->given.given, request->params, sizeof request->params);
  status = op_words_divide(run->info, run->is_op, &request->operands, &run->given);
  if (status == STATUS_GOOD) status = bind_words(run->ctx, run->info, &run->given.operands, run->is_op, run->words);
  if (status == STATUS_GOOD) status = bind_printed(run);
  if (status == STATUS_GOOD && !run->given.axes) status = bind_params(run);
  if (status) return status;
  run->n_in = run->info->n_in;
  run->n_out = run->info->n_out;
  const size_t n = (size_t)run->n_in + (size_t)run->n_out;
  run->arrays = calloc(n, sizeof run->arrays[0]);
  run->tensors = calloc(n, sizeof run->tensors[0]);
  if (!run->arrays || !run->tensors) status = complain("out of memory");
  for (size_t k = 0; k < n && !status; k++) run->tensors[k] = &run->arrays[k].tensor;
  for (int32_t k = 0, n = 0; k < run->n_in + run->n_out && !status; k++) {
    if (k == run->n_in) n = 0;
    if (run->words[k]->path && strcmp(run->words[k]->path, "-") == 0 && ++n > 1)
      status = complain("standard %s is one %s only", k < run->n_in ? "input" : "output", k < run->n_in ? "input" : "output");
  }
  for (int32_t k = 0; k < run->n_in && !status; k++)
    if (!ndarray_open(&run->arrays[k], run->words[k], run->ctx)) status = STATUS_FAILED;
  if (!status && run->given.axes) status = bind_params(run);
  if (!status && is_dynamic(run) && request->device.device_type != kDLCPU)
    status = complain("%s runs on the cpu only: its output's shape depends on values", run->info->name);
  return status ? status : size_outputs(run, 0);
}

/* Each output's file, as far as can be known now. */
static int begin_outputs(run *run, const run_request *request) {
  output_file_catch_signals();
  for (int32_t k = run->n_in; k < run->n_in + run->n_out; k++) {
    ndarray *array = &run->arrays[k];
    array->is_packed = request->compress;
    for (int32_t j = run->n_in; j < k && !array->first; j++) ndarray_join(array, &run->arrays[j]);
    for (const ndarray *other = array->first; other && other != array; other = other->next)
      if (strcmp(other->member, array->member) == 0)
        return complain("%s and %s would be one array of %s, %s", other->word->name, array->word->name, array->archive, array->member);
    if (!ndarray_begin(array)) return STATUS_FAILED;
    for (int32_t j = run->n_in; j < k; j++)
      if (array->target.target && run->arrays[j].target.target && strcmp(run->arrays[j].target.target, array->target.target) == 0)
        return complain("%s and %s would be written to one file, %s", run->arrays[j].word->name, array->word->name,
                        array->word->path);
  }
  return STATUS_GOOD;
}

/* Calls each(array) for the files of [from, to). They share one progress line. */
static int go_through(run *run, int32_t from, int32_t to, int (*each)(ndarray *array)) {
  int64_t before = 0, all = 0;
  int status = STATUS_GOOD;
  for (int32_t k = from; k < to; k++) all += run->arrays[k].bytes;
  for (int32_t k = from; k < to && !status; k++) {
    progress_part(before, all);
    if (!each(&run->arrays[k])) status = STATUS_FAILED;
    before += run->arrays[k].bytes;
  }
  progress_part(0, 0);
  return status;
}

static int read_inputs(run *run) { return go_through(run, 0, run->n_in, ndarray_read); }

/* ---- Computing ---- */

static double seconds_between(const struct timespec *a, const struct timespec *b) {
  return (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times, int n) {
  qsort(times, (size_t)n, sizeof times[0], by_size);
  return n % 2 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
}

static quern_status fill_explanation(void *arg, char *text, size_t size) {
  const run *run = arg;
  return quern_op_explain(run->op, run->n_in, run->tensors, run->n_out, run->tensors + run->n_in, &run->call, text,
                          size);
}

/* Before the last runs: code that a compiler finishes during them has not served them. */
static int explain(run *run) {
  run->explanation = text_of_any_size(fill_explanation, run);
  return run->explanation ? STATUS_GOOD : STATUS_FAILED;
}

static int run_once(const run *run, quern_plan *plan) {
  void *data[BINDING_MAX];
  if (!plan) { /* some scans have no plan, nor have ops with a shape that depends on values */
    const quern_status failed =
        quern_op_call(run->op, run->n_in, run->tensors, run->n_out, run->tensors + run->n_in, &run->call);
    return failed ? complain_library() : STATUS_GOOD;
  }
  for (int32_t k = 0; k < run->n_in + run->n_out; k++) data[k] = run->tensors[k]->data;
  return quern_plan_run(plan, data, data + run->n_in, &run->call) ? complain_library() : STATUS_GOOD;
}

static int time_on_host(const run *run, quern_plan *plan, double *seconds) {
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  const int status = run_once(run, plan);
  clock_gettime(CLOCK_MONOTONIC, &end);
  *seconds = seconds_between(&start, &end);
  return status;
}

/* n < DEVICE_MARKS runs in a row, a mark of the device's own clock between two, so that it need not wait for the host. */
static int time_on_device(const run *run, quern_plan *plan, int n, double *seconds) {
  int status = device_mark(run->device, 0) ? STATUS_GOOD : STATUS_FAILED;
  for (int i = 0; i < n && !status; i++) {
    status = run_once(run, plan);
    if (!status && !device_mark(run->device, i + 1)) status = STATUS_FAILED;
  }
  if (!status && !device_wait(run->device, n)) status = STATUS_FAILED;
  for (int i = 0; i < n && !status; i++) {
    if (!device_ms(run->device, i, i + 1, &seconds[i])) status = STATUS_FAILED;
    seconds[i] *= 1e-3;
  }
  return status;
}

/* A plan, where there is one, so that the time of a run is not that of choosing or compiling. */
static int run_plan(run *run, quern_plan *plan, int repeats, int is_explained) {
  const int most = run->device ? DEVICE_MARKS - 1 : 1;
  double *times = malloc((size_t)repeats * sizeof times[0]);
  if (!times) return complain("out of memory");
  int status = STATUS_GOOD;
  for (int i = 0, n; i < repeats && !status; i += n) {
    n = repeats - i < most ? repeats - i : most;
    progress_set("computing", run->info->name, i, repeats > 1 ? repeats : 0);
    if (is_explained && i + n == repeats) status = explain(run);
    if (!status) status = run->device ? time_on_device(run, plan, n, times + i) : time_on_host(run, plan, times + i);
  }
  if (!status) run->median_s = median(times, repeats);
  free(times);
  return status;
}

/* All that `move` is given, between two marks; *ms: how long it took there. */
static int move_arrays(run *run, int32_t from, int32_t to, int (*move)(device *, ndarray *), double *ms) {
  int good = device_mark(run->device, 0);
  for (int32_t k = from; k < to && good; k++) good = move(run->device, &run->arrays[k]);
  good = good && device_mark(run->device, 1) && device_wait(run->device, 1) && device_ms(run->device, 0, 1, ms);
  return good ? STATUS_GOOD : STATUS_FAILED;
}

static int send_inputs(run *run) {
  for (int32_t k = 0; k < run->n_in + run->n_out; k++)
    if (!device_take(run->device, &run->arrays[k])) return STATUS_FAILED;
  run->call.stream = device_stream(run->device);
  progress_set("moving", "arrays to the device", 0, 0);
  return move_arrays(run, 0, run->n_in, device_send, &run->to_device_ms);
}

static int fetch_outputs(run *run) {
  progress_set("moving", "arrays from the device", 0, 0);
  return move_arrays(run, run->n_in, run->n_in + run->n_out, device_fetch, &run->to_host_ms);
}

static int compute(run *run, const run_request *request) {
  quern_plan *plan = NULL;
  /* Pages that are touched for the first time are the operating system's work, which no time should show. */
  const int is_timed = request->explain || request->repeats || run->device;
  for (int32_t k = run->n_in; k < run->n_in + run->n_out && is_timed; k++)
    memset(run->arrays[k].memory, 0, (size_t)run->arrays[k].bytes);
  if (!is_dynamic(run) && read_inputs(run)) return STATUS_FAILED;
  if (run->device && send_inputs(run)) return STATUS_FAILED;
  progress_set("preparing", run->info->name, 0, 0);
  if (!is_dynamic(run)) {
    const quern_status failed =
        quern_op_prepare(run->op, run->n_in, run->tensors, run->n_out, run->tensors + run->n_in, &run->call, &plan);
    if (failed && !(failed == QUERN_E_UNSUPPORTED && run->is_op)) return complain_library(); /* some scans: they are called */
  }
  int status = run_plan(run, plan, request->repeats ? request->repeats : 1, request->explain);
  quern_plan_release(plan);
  if (!status && run->device) status = fetch_outputs(run);
  return status;
}

static int write_outputs(run *run) {
  if (go_through(run, run->n_in, run->n_in + run->n_out, ndarray_write)) return STATUS_FAILED;
  for (int32_t k = run->n_in; k < run->n_in + run->n_out; k++)
    if (!ndarray_publish(&run->arrays[k])) return STATUS_FAILED;
  return STATUS_GOOD;
}

static void print_times(const run *run, const run_request *request) {
  double bytes = 0;
  for (int32_t k = 0; k < run->n_in + run->n_out; k++) bytes += (double)run->arrays[k].bytes;
  if (run->explanation) fputs(run->explanation, stdout);
  if (run->device)
    printf("to_device_ms: %.6f\nkernel_ms: %.6f\nto_host_ms: %.6f\n", run->to_device_ms, 1e3 * run->median_s, run->to_host_ms);
  else if (request->explain || request->repeats)
    printf("run_ms: %.6f\n", 1e3 * run->median_s);
  if (request->explain) printf("gbps: %.3f\n", run->median_s > 0 ? 1e-9 * bytes / run->median_s : 0.0);
}

/* The value alone, where nothing else is printed. */
static void print_outputs(const run *run, const run_request *request) {
  const int is_alone = run->n_printed == 1 && !request->explain && !request->repeats && !run->device;
  for (int32_t k = run->n_in; k < run->n_in + run->n_out; k++) {
    if (run->words[k]->path) continue;
    if (!is_alone) printf("%s: ", run->words[k]->name);
    print_array(&run->arrays[k]);
    putchar('\n');
  }
}

int command_run(int argc, char **argv) {
  run_request request = {0};
  run run = {0};
  int status = read_request(&request, argc, argv);
  if (status == STATUS_GOOD) {
    progress_begin();
    status = open_operands(&run, &request);
    if (!status && request.device.device_type == kDLCUDA && !(run.device = device_open(request.device.device_id)))
      status = STATUS_FAILED;
    if (!status && is_dynamic(&run)) status = read_inputs(&run) ? STATUS_FAILED : size_outputs(&run, 1);
    if (!status) status = begin_outputs(&run, &request);
    if (!status) status = compute(&run, &request);
    if (!status) status = write_outputs(&run);
    progress_end();
    if (!status) {
      print_outputs(&run, &request);
      print_times(&run, &request);
      status = finish_output();
    }
  }
  for (int32_t k = 0; run.arrays && k < run.n_in + run.n_out; k++) ndarray_end(&run.arrays[k]);
  free(run.arrays);
  free(run.tensors);
  free(run.printed);
  free(run.explanation);
  quern_op_release(run.op);
  quern_ctx_release(run.ctx);
  device_close(run.device);
  spec_list_free(&request.specs);
  return status;
}
