// SPDX-License-Identifier: Apache-2.0
//
// client.cc: a program that uses quern.hpp as its head says. It prints one line for each thing that is wrong, then "done".
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <quern/ops.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#if __cplusplus >= 202002L
#include <span>
#endif

static void check(bool is_right, const char *what) {
  if (!is_right) std::printf("wrong: %s\n", what);
}

template <class Work>
static quern::Status thrown(Work work) {
  try {
    work();
  } catch (const quern::Error &error) {
    return quern::Status(error.status(), error.what());
  }
  return quern::Status();
}

static bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

// An array class of somebody's own; strides count elements.
struct Matrix {
  float *first;
  std::vector<std::size_t> extents, steps;
  float *data() const { return first; }
  const std::vector<std::size_t> &shape() const { return extents; }
  const std::vector<std::size_t> &strides() const { return steps; }
};

struct Half {
  std::uint16_t bits;
};
template <>
struct quern::DType<Half> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};

static void views() {
  std::vector<float> x = {1, 2, -3}, y(3);
  const std::vector<float> constant = x;
  std::array<float, 3> z{};
  float grid[2][3] = {{1, 2, 3}, {4, 5, 6}}, plain[3], number = 2, sums[3];
  const quern::Op relu("relu"), add("add"), sum("sum");
  relu({x}, {y});
  check(y == std::vector<float>({1, 2, 0}), "vectors");
  relu({constant}, {z});
  check(z[1] == 2 && z[2] == 0, "a constant vector in, an array out");
  add({x, number}, {plain});
  check(plain[0] == 3 && plain[2] == -1, "a number, a C array");
  add({quern::View(&grid[0][0], {2, 3}), x}, {quern::View(&grid[0][0], {2, 3})});
  check(grid[1][0] == 5 && grid[1][2] == 3, "a pointer and a shape, in place");
  const Matrix turned{&grid[0][0], {3, 2}, {1, 3}};
  sum({turned}, {sums}, {{"axes", quern::Axes{1}}});
  check(sums[0] == 7 && sums[2] == 3, "data(), shape(), strides()");
  const std::vector<long> shape = {3}, backwards = {-1};
  relu({quern::View(x.data() + 2, shape, backwards)}, {y});
  check(y[0] == 0 && y[2] == 1, "negative strides, in containers");
  Half halves[2] = {{0x3c00}, {0xc000}};
  double wide[2];
  quern::Op("copy")({halves}, {wide});
  check(wide[0] == 1 && wide[1] == -2, "a dtype of the program's own");
  unsigned char bits[2] = {0x40, 0x40};
  quern::Op("copy")({quern::View(static_cast<void *>(bits), DLDataType{kDLBfloat, 16, 1}, std::array<int, 1>{1})}, {quern::View(wide, {1})});
  check(wide[0] == 3, "a dtype by its code");
  std::vector<quern::View> list;
  for (int k = 0; k < 5; k++) list.emplace_back(x);
  list[0] = quern::View(plain);
  const quern::View outputs[] = {y};
  add(quern::Views(list.data(), 2), quern::Views(outputs, 1));
  check(y[0] == 4 && y[1] == 6, "lists of views, which are copies with arrays of their own");
  relu({list[1].tensor()}, {y});
  check(y[1] == 2, "a DLTensor");
#if __cplusplus >= 202002L
  relu({std::span(constant)}, {std::span(y)});
  check(y[2] == 0 && y[1] == 2, "std::span");
#endif
#if defined(__cpp_lib_mdspan)
  std::array<float, 6> rows{};
  relu({std::mdspan(&grid[0][0], 2, 3)}, {std::mdspan(rows.data(), 2, 3)});
  check(rows[3] == 5, "std::mdspan");
#endif
  quern::add(x, x, y);
  quern::clip(x, y, {{"max", 1.5}, {"min", -1}});
  check(y[0] == 1 && y[1] == 1.5F && y[2] == -1, "functions of ops, parameters by name");
}

static void axes() {
  float cube[24], out[24], total;
  for (int k = 0; k < 24; k++) cube[k] = static_cast<float>(k);
  const quern::View x(cube, {2, 3, 4});
  const quern::Op sum("sum");
  sum({x}, {quern::View(out, {2, 3})}, {{"axes", quern::Axes{-1}}});
  check(out[0] == 6 && out[5] == 86, "the last axis, which is -1, not all");
  constexpr quern::Axes ends{0, -1}, first{0};
  sum({x}, {quern::View(out, {3})}, {{"axes", ends}});
  check(out[0] == 60 && out[2] == 124, "the first and the last");
  sum({x}, {total}, {{"axes", quern::Axes::all()}});
  check(total == 276, "all");
  sum({x}, {quern::View(out, {2, 3, 4})}, {{"axes", quern::Axes{}}});
  check(out[23] == 23, "none");
  sum({x}, {quern::View(out, {3, 4})}, {{"axes", quern_scalar_i64(1)}});
  check(out[0] == 12 && out[11] == 34, "a bit mask as the C API takes it");
  quern::cumulative_sum(x, quern::View(out, {2, 3, 4}), {{"axes", first}});
  check(out[0] == 0 && out[12] == 12, "of a scan");
  quern::vecdot(quern::View(cube, {4}), x, quern::View(out, {2, 3}), {{"axes", quern::Axes{-1}}});
  check(out[0] == 14 && out[5] == 134, "counted in the shape that the inputs are broadcast to");
  const quern::Plan plan = sum.prepare({x}, {quern::View(out, {2, 4})}, {{"axes", quern::Axes{1}}});
  plan.run({cube}, {out});
  check(out[0] == 12 && out[7] == 57, "of a plan");

  const quern::Op clip("clip"), scan("cumulative_sum");
  const auto says = [&](const quern::Op &op, const quern::Call &call, const char *part) {
    const quern::Status status = op.try_call({x}, {quern::View(out, {2, 3, 4})}, call);
    check(status.code() == QUERN_E_ARGUMENT && has(status.text(), part), part);
    if (!has(status.text(), part)) std::printf("  it says: %s\n", status.text().c_str());
  };
  says(sum, {{"axes", -1}}, "sum: axes is a plain number, an axis or a bit mask: write Axes{1}, Axes{-1} for the last");
  says(sum, {{"axes", 1}}, "plain number");
  says(sum, {{"axes", 1.0}}, "plain number");
  says(scan, {{"axes", 1}}, "cumulative_sum: axes is a plain number");
  says(scan, {{"axes", ends}}, "exactly one of 3 dimensions");
  says(sum, {{"axes", quern::Axes{3}}}, "sum: axis 3 is out of bounds for 3 dimensions: expected -3 to 2");
  says(sum, {{"axes", quern::Axes{0, -4}}}, "axis -4 is out of bounds for 3 dimensions");
  says(sum, {{"axes", quern::Axes{32}}}, "axis 32 is out of bounds for 3");
  says(sum, {{"axes", quern::Axes{-2147483647 - 1}}}, "axis -2147483648 is out of bounds for 3");
  says(sum, {{"axes", quern::Axes{2, -1}}}, "axis -1 is given twice");
  says(sum, {{"axes", quern::Axes{1, 1}}}, "axis 1 is given twice");
  says(clip, {{"min", quern::Axes{0}}}, "clip: min is a number: it takes no Axes");
  float one = 1;
  const quern::Status none = sum.try_call({one}, {total}, {{"axes", quern::Axes{0}}});
  check(has(none.text(), "axis 0 is out of bounds for 0 dimensions"), "an axis of a number");
}

static void errors() {
  std::vector<float> x = {1, 2, -3}, y(3), two(2);
  const std::vector<float> constant = x;
  const quern::Op clip("clip");
  check(thrown([] { quern::Op("gelo"); }).code() == QUERN_E_NOTFOUND, "an unknown op throws");
  const auto found = quern::Op::try_find("gelo");
  check(!found && found.error().code() == QUERN_E_NOTFOUND && has(found.error().text(), "gelu"), "or gives a status and a sentence");
  check(thrown([&] { clip({x}, {constant}); }).code() == QUERN_E_READONLY, "a constant output");
  check(clip.try_call({x}, {two}).code() == QUERN_E_SHAPE, "a shape");
  const quern::Status status = clip.try_call({x}, {y}, {{"low", 1}});
  check(status.code() == QUERN_E_ARGUMENT && has(status.text(), "low") && has(status.text(), "min, max"), "an unknown parameter");
  check(thrown([&] { quern::View(x.data(), {3}, {1, 1}); }).code() == QUERN_E_ARGUMENT, "strides of another number");
  check(thrown([&] { quern::View(x.data(), std::vector<int>(33, 1)); }).code() == QUERN_E_ARGUMENT, "33 dimensions");
  check(static_cast<bool>(clip.try_call({x}, {y})), "no error");

  // numbers and texts from elsewhere
  const std::int64_t large = std::int64_t{1} << 40;
  const quern::View beyond(x.data(), {large, large, large}), empty(x.data(), {0, large, large});
  check(clip.try_call({beyond}, {y}).code() != QUERN_OK, "a shape of more elements than there are numbers");
  check(empty.tensor().ndim == 3, "  and one of none");
  DLTensor odd = quern::View(x.data(), {3}).tensor();
  odd.ndim = 1000;
  const quern::Op sum("sum");
  check(sum.try_call({quern::View(odd)}, {y}, {{"axes", quern::Axes{-1}}}).code() != QUERN_OK, "1000 dimensions, of which the last");
  odd.ndim = -5;
  check(sum.try_call({quern::View(odd)}, {y}, {{"axes", quern::Axes{-1}}}).code() != QUERN_OK, "a negative number of them");
  const std::string zero("x + 1\0 + 1", 10), named("relu\0", 5);
  check(quern::Expression::try_compile(zero).error().code() == QUERN_E_ARGUMENT, "a zero in an expression");
  check(quern::Op::try_find(named).error().code() == QUERN_E_ARGUMENT, "  in a name");
  check(quern::Context(quern::Options()).try_load_spec(named).code() == QUERN_E_ARGUMENT, "  in a path");
}

static void handles() {
  std::vector<float> x = {1, 2, -3}, y(3), z(3);
  quern::Op op("relu"), other("negative");
  other = std::move(op);
  other({x}, {y});
  check(y[2] == 0, "a moved op");
  quern::Op sum("sum");
  const quern::Op away(std::move(sum));
  check(sum.try_call({x}, {y}, {{"axes", quern::Axes{0}}}).code() == QUERN_E_ARGUMENT && !sum.try_shapes({x}), "what is left of one");
  quern::Plan plan = other.prepare({x}, {y});
  quern::Plan moved = std::move(plan);
  moved.run({x.data()}, {z.data()});
  check(z == y, "a plan");
  check(moved.try_run({nullptr}, {z.data()}).code() == QUERN_E_ARGUMENT, "its errors");
  check(moved.try_run({}, {z.data()}).code() == QUERN_E_ARGUMENT && moved.try_run({x.data()}, {}).code() == QUERN_E_ARGUMENT,
        "without pointers");
  const std::vector<quern_shape> shapes = quern::Op("sum").shapes({quern::View(x.data(), {1, 3})}, {{"axes", quern::Axes{-1}}, {"keepdims", 1}});
  check(shapes.size() == 1 && shapes[0].ndim == 2 && shapes[0].shape[1] == 1 && shapes[0].dtype.bits == 32, "shapes");
  float columns[4] = {1, -2, 3, 4}, memory[4] = {9, 9, 9, 9};
  const quern::View turned(columns, {2, 2}, {1, 2}), kept(memory, other.shapes({turned})[0]);
  other({turned}, {kept});
  check(kept.tensor().strides[1] == 2 && memory[0] == 1 && memory[1] == 0 && memory[2] == 3 && memory[3] == 4,
        "memory for a result, with the layout of the operands");
  check(other.workspace({x}, {y}) == 0 && has(other.explain({x}, {y}), "tier: built"), "workspace, explain");
  check(std::string(other.info().name) == "relu", "info");
  quern_options options = quern::Options();
  options.threads = 1;
  const quern::Context ctx(options);
  options.size = 3;
  check(quern::Context::try_make(options).error().code() == QUERN_E_VERSION, "options of another size");
  quern_op_def def{};
  def.size = sizeof def;
  def.name = "client.nothing";
  def.n_in = def.n_out = 1;
  def.call = [](void *, std::int32_t, DLTensor *const *, std::int32_t, DLTensor *const *, const quern_call *) -> quern_status { return 0; };
  ctx.add(def);
  check(ctx.try_add(def).code() == QUERN_E_EXISTS, "an op of the program's own");
  const std::vector<std::string> names = ctx.names();
  check(names.size() > 100 && quern::Op("client.nothing", ctx).get() != nullptr, "the names of a context");
  check(quern::OpRef(quern_builtin_add()).info().n_in == 2, "an op that is borrowed");
}

static void run_time() {
  std::vector<double> x = {1, 2, 3}, y = {4, 5, 6}, z(3);
  double s = 0;
  const quern::Expression dot("s = sum(x * y)"), scaled("param a; z = a * x");
  dot({x, y}, {s});
  check(s == 32, "an expression");
  scaled({x}, {z}, {{"a", 0.5}});
  check(z[2] == 1.5, "its parameter");
  check(quern::Expression::try_compile("y = x +").error().code() == QUERN_E_SYNTAX, "a syntax error");
  const quern::Context ctx(quern::Options());
  const quern::Status loaded =
      ctx.try_load_spec_text("client", "unary \"client.halved\" { doc = \"x / 2.\", dtypes = floating, body = \"x * 0.5\" }");
  if (loaded.code() == QUERN_E_UNSUPPORTED) return; // no generator here
  check(static_cast<bool>(loaded), "a spec");
  quern::Op("client.halved", ctx)({x}, {z});
  check(z[2] == 1.5, "its op");
}

static void numbers() {
  const quern_scalar half = QUERN_F64(0.5), minus = QUERN_I64(-1), most = QUERN_U64(UINT64_MAX), i = QUERN_C128(0, 1);
  check(half.kind == QUERN_F64 && std::fabs(half.v.f[0] - 0.5) == 0 && minus.v.i == -1 && most.v.u == UINT64_MAX, "numbers");
  check(i.kind == QUERN_C128 && std::fabs(i.v.f[1] - 1) == 0, "a complex number");
}

static int n_made, n_deleted;

static void give_back(DLManagedTensorVersioned *managed) {
  n_deleted++;
  std::free(managed->dl_tensor.data);
  delete[] managed->dl_tensor.shape;
  delete managed;
}

// The third tensor of a call is not made.
static int throws_at_third(DLTensor *prototype, DLManagedTensorVersioned **managed, void *, void (*)(void *, const char *, const char *)) {
  if (n_made == 2) throw std::runtime_error("no third one");
  n_made++;
  *managed = new DLManagedTensorVersioned{};
  (*managed)->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  (*managed)->deleter = give_back;
  (*managed)->dl_tensor = *prototype;
  (*managed)->dl_tensor.strides = nullptr;
  (*managed)->dl_tensor.shape = new std::int64_t[1]{prototype->shape[0]};
  (*managed)->dl_tensor.data = std::malloc(static_cast<std::size_t>(prototype->shape[0]) * sizeof(double));
  return 0;
}

static void allocators() {
  const quern::Expression three("a = x + 1; b = x * 2; c = x - 3");
  std::vector<double> x = {1, 2, 3}, a(3), b(3), c(3);
  const quern::View view = x;
  DLTensor in = view.tensor(), *ins[1] = {&in};
  DLManagedTensorVersioned *out[3] = {};
  for (int i = 0; i < 3; i++) {
    std::string said;
    n_made = n_deleted = 0;
    try {
      quern_op_call_alloc(three.get(), 1, ins, 3, nullptr, out, throws_at_third, nullptr);
    } catch (const std::runtime_error &e) {
      said = e.what();
    }
    check(said == "no third one" && n_made == 2, "an allocator's exception passes through the call");
    check(n_deleted == 2 && !out[0], "what it had made is given back");
    three({x}, {a, b, c});
    check(a[0] == 2 && b[2] == 6 && c[1] == -1, "the op is called as before");
  }
}

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0); // what is wrong is seen also if an exception ends it
  views();
  axes();
  errors();
  handles();
  run_time();
  numbers();
  allocators();
  std::puts("done");
}
