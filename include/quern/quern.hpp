/* SPDX-License-Identifier: Apache-2.0
 *
 * quern.hpp: the C API of quern.h for C++17 and later. Header-only; nothing is beneath it but that API.
 *
 *   quern::Op gelu("gelu");
 *   gelu({x}, {y});                              // x, y: std::vector<float>, std::span, std::mdspan, quern::View ...
 *   quern::Op("clip")({x}, {y}, {{"min", 0}, {"max", 6}});
 *   quern::Op("sum")({x}, {y}, {{"axes", quern::Axes{-1}}});
 *
 * Each function that can fail has two forms. op(...), Op(...) throw quern::Error. try_... return a quern::Result and throw
 * nothing; without exceptions (-fno-exceptions) the first form ends the program with the error's sentence.
 *
 * Op, Plan and Context own one reference each and can be moved, not copied; any number of threads may use one. Views borrow: their
 * memory must outlive the call. All names of this namespace begin with a capital. */
#ifndef QUERN_QUERN_HPP
#define QUERN_QUERN_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__has_include) && __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

#include "quern.h"

namespace quern {

// ---- Errors --------------------------------------------------------------------------------------------------------------------

// A failure: its status (QUERN_E_*) and the sentence about it.
class Error : public std::runtime_error {
 public:
  Error(quern_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  quern_status status() const noexcept { return status_; }

 private:
  quern_status status_;
};

namespace Detail {

[[noreturn]] inline void fail(quern_status status, const std::string &text) {
#if defined(__cpp_exceptions)
  throw Error(status, text);
#else
  std::fprintf(stderr, "quern: error %d: %s\n", static_cast<int>(status), text.c_str());
  std::abort();
#endif
}

} // namespace Detail

// The outcome of a call without a value: QUERN_OK, or a status and a sentence.
class Status {
 public:
  Status() = default;
  Status(quern_status code, std::string text) : code_(code), text_(std::move(text)) {}
  // The status of a C call that has just returned on this thread.
  static Status of(quern_status code) { return code == QUERN_OK ? Status() : Status(code, quern_last_error()); }

  // Whether the call went well; if not, QUERN_E_* and the sentence about it.
  bool has_value() const noexcept { return code_ == QUERN_OK; }
  explicit operator bool() const noexcept { return has_value(); }
  quern_status code() const noexcept { return code_; }
  const std::string &text() const noexcept { return text_; }
  // Throws Error if the call failed.
  void value() const {
    if (code_ != QUERN_OK) Detail::fail(code_, text_);
  }

 private:
  quern_status code_ = QUERN_OK;
  std::string text_;
};

namespace Detail {

// C's functions would read a text up to a zero in it. what: it, for the sentence
inline Status no_zero(const std::string &text, const char *what) {
  if (text.find('\0') == std::string::npos) return Status();
  return Status(QUERN_E_ARGUMENT, std::string(what) + " has a character of value 0");
}

} // namespace Detail

// A value or an error, with std::expected's names.
template <class T>
class Result {
 public:
  Result(T &&value) : value_(std::move(value)) {}
  Result(Status error) : error_(std::move(error)) {}

  // Whether there is a value, and if not, why.
  bool has_value() const noexcept { return error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  const Status &error() const noexcept { return error_; }
  // Throws Error if there is none.
  T &value() & { return error_.value(), *value_; }
  const T &value() const & { return error_.value(), *value_; }
  T &&value() && { return error_.value(), std::move(*value_); }
  T &operator*() & noexcept { return *value_; }
  const T &operator*() const & noexcept { return *value_; }
  T &&operator*() && noexcept { return std::move(*value_); }
  T *operator->() noexcept { return &*value_; }
  const T *operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status error_;
};

// ---- Dtypes --------------------------------------------------------------------------------------------------------------------

// The dtype of a C++ type. Specialise it for types of your own: struct DType<half> { static constexpr DLDataType value{...}; };
template <class T, class Enable = void>
struct DType;

template <>
struct DType<bool> {
  static constexpr DLDataType value{kDLBool, 8, 1};
};
template <class T>
struct DType<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static constexpr DLDataType value{std::is_signed_v<T> ? kDLInt : kDLUInt, 8 * sizeof(T), 1};
};
// float, double; where the compiler has them, _Float16 and the types of <stdfloat>
template <>
struct DType<float> {
  static constexpr DLDataType value{kDLFloat, 32, 1};
};
template <>
struct DType<double> {
  static constexpr DLDataType value{kDLFloat, 64, 1};
};
#if defined(__STDCPP_FLOAT16_T__)
template <>
struct DType<decltype(0.0f16)> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
#elif defined(__FLT16_MANT_DIG__) && defined(__clang__)
template <>
struct DType<_Float16> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <>
struct DType<decltype(0.0bf16)> {
  static constexpr DLDataType value{kDLBfloat, 16, 1};
};
#endif
template <class T>
struct DType<const T> : DType<T> {};

// ---- Views ---------------------------------------------------------------------------------------------------------------------

namespace Detail {

template <class A, class = void>
struct HasShape : std::false_type {}; // data(), shape() and strides(), in elements
template <class A>
struct HasShape<A, std::void_t<decltype(std::declval<A &>().data()), decltype(std::declval<A &>().shape()),
                               decltype(std::declval<A &>().strides())>> : std::true_type {};

template <class A, class = void>
struct HasSize : std::false_type {}; // data() and size(): one dimension
template <class A>
struct HasSize<A, std::void_t<decltype(std::declval<A &>().data()), decltype(std::declval<A &>().size())>>
    : std::is_pointer<decltype(std::declval<A &>().data())> {};

template <class A, class = void>
struct HasExtents : std::false_type {}; // std::mdspan and its like: rank(), extent(d), stride(d), data_handle()
template <class A>
struct HasExtents<A, std::void_t<decltype(std::declval<A &>().data_handle()), decltype(std::declval<A &>().extent(0)),
                                 decltype(std::declval<A &>().stride(0))>> : std::true_type {};

} // namespace Detail

// A tensor's description: DLTensor with arrays of its own. It borrows the memory. Copies are independent.
class View {
 public:
  // Row-major, of this shape.
  template <class T>
  View(T *data, std::initializer_list<std::int64_t> shape) {
    take(data, shape);
  }
  // Strides count elements; they may be 0 or negative.
  template <class T>
  View(T *data, std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
    take(data, shape);
    set_strides(strides);
  }
  // Shapes and strides from any containers of whole numbers.
  template <class T, class Shape, class = decltype(std::begin(std::declval<const Shape &>()))>
  View(T *data, const Shape &shape) {
    take(data, shape);
  }
  template <class T, class Shape, class Strides, class = decltype(std::begin(std::declval<const Shape &>())),
            class = decltype(std::begin(std::declval<const Strides &>()))>
  View(T *data, const Shape &shape, const Strides &strides) {
    take(data, shape);
    set_strides(strides);
  }
  // Memory of a dtype or device given at run time.
  template <class Shape = std::initializer_list<std::int64_t>>
  View(void *data, DLDataType dtype, const Shape &shape, DLDevice device = {kDLCPU, 0}) {
    describe(data, dtype, shape, false);
    tensor_.device = device;
  }
  // Memory for a result that OpRef::shapes describes: of its dtype and shape, with the layout of the operands.
  View(void *data, const quern_shape &shape) {
    describe(data, shape.dtype, Span{shape.shape, static_cast<std::size_t>(shape.ndim)}, false);
    set_strides(Span{shape.strides, static_cast<std::size_t>(shape.ndim)});
    tensor_.device = shape.device;
  }
  // Anything with data(), shape() and strides() in elements; std::mdspan; else anything with data() and size(), one dimension.
  template <class A, class = std::enable_if_t<!std::is_base_of_v<View, std::decay_t<A>> && !std::is_arithmetic_v<std::decay_t<A>> &&
                                              (Detail::HasShape<A>::value || Detail::HasExtents<A>::value || Detail::HasSize<A>::value)>>
  View(A &&array) {
    if constexpr (Detail::HasShape<A>::value) {
      take(array.data(), array.shape());
      set_strides(array.strides());
    } else if constexpr (Detail::HasExtents<A>::value) {
      std::int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
      constexpr std::size_t rank = std::decay_t<A>::rank();
      static_assert(rank <= QUERN_MAX_NDIM, "too many dimensions");
      for (std::size_t d = 0; d < rank; d++) {
        shape[d] = static_cast<std::int64_t>(array.extent(d));
        strides[d] = static_cast<std::int64_t>(array.stride(d));
      }
      take(array.data_handle(), Span{shape, rank});
      set_strides(Span{strides, rank});
    } else {
      const std::int64_t size = static_cast<std::int64_t>(array.size());
      take(array.data(), Span{&size, 1});
    }
  }
  // A number or a C array: no dimensions; one.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  View(T &number) {
    take(&number, Span{nullptr, 0});
  }
  // A number that has no name is refused with what to write: a view borrows memory.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  View(const T &&) {
    static_assert(!std::is_arithmetic_v<T>, "a number is an operand as a variable of its dtype, const float half = 0.5f; in an expression "
                                            "it stands in the text");
  }
  template <class T, std::size_t N>
  View(T (&array)[N]) {
    const std::int64_t size = static_cast<std::int64_t>(N);
    take(array, Span{&size, 1});
  }
  // The same tensor. flags: DLPack's, of the tensor that was exchanged
  View(const DLTensor &tensor, std::uint64_t flags = 0) : tensor_(tensor), flags_(flags) { own_arrays(); }
  View(const View &other) : tensor_(other.tensor_), flags_(other.flags_) { own_arrays(); }
  View &operator=(const View &other) {
    if (this == &other) return *this;
    tensor_ = other.tensor_;
    flags_ = other.flags_;
    own_arrays();
    return *this;
  }

  // DLPack's description, valid as long as the view, and its flags.
  const DLTensor &tensor() const noexcept { return tensor_; }
  std::uint64_t flags() const noexcept { return flags_; }
  bool is_readonly() const noexcept { return (flags_ & DLPACK_FLAG_BITMASK_READ_ONLY) != 0; }

 private:
  struct Span {
    const std::int64_t *at;
    std::size_t n;
    const std::int64_t *begin() const { return at; }
    const std::int64_t *end() const { return at + n; }
  };

  // Copies shape and strides. A tensor of an impossible rank stays as it is: calls refuse it.
  void own_arrays() {
    if (tensor_.ndim <= 0 || tensor_.ndim > QUERN_MAX_NDIM || tensor_.shape == nullptr) return;
    const std::size_t bytes = static_cast<std::size_t>(tensor_.ndim) * sizeof(std::int64_t);
    std::memcpy(shape_, tensor_.shape, bytes);
    tensor_.shape = shape_;
    if (tensor_.strides == nullptr) return;
    std::memcpy(strides_, tensor_.strides, bytes);
    tensor_.strides = strides_;
  }

  template <class T, class Shape>
  void take(T *data, const Shape &shape) {
    describe(data, DType<T>::value, shape, std::is_const_v<T>);
  }
  template <class Shape>
  void describe(const void *data, DLDataType dtype, const Shape &shape, bool is_const) {
    tensor_ = DLTensor{const_cast<void *>(data), DLDevice{kDLCPU, 0}, 0, dtype, shape_, strides_, 0};
    flags_ = is_const ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    for (const auto &extent : shape) {
      if (tensor_.ndim == QUERN_MAX_NDIM) Detail::fail(QUERN_E_ARGUMENT, "a view has at most 32 dimensions");
      shape_[tensor_.ndim++] = static_cast<std::int64_t>(extent);
    }
    std::uint64_t step = 1; // of a shape that is too large, which calls refuse, it wraps
    for (std::int32_t d = tensor_.ndim; d-- > 0;) {
      strides_[d] = static_cast<std::int64_t>(step);
      step *= shape_[d] > 0 ? static_cast<std::uint64_t>(shape_[d]) : 1;
    }
  }
  template <class Strides>
  void set_strides(const Strides &strides) {
    std::int32_t d = 0;
    for (const auto &stride : strides) {
      if (d == tensor_.ndim) break;
      strides_[d++] = static_cast<std::int64_t>(stride);
    }
    if (d != tensor_.ndim || static_cast<std::ptrdiff_t>(d) != std::distance(std::begin(strides), std::end(strides)))
      Detail::fail(QUERN_E_ARGUMENT, "a view has one stride for each dimension");
  }

  DLTensor tensor_{};
  std::uint64_t flags_ = 0;
  std::int64_t shape_[QUERN_MAX_NDIM];
  std::int64_t strides_[QUERN_MAX_NDIM];
};

namespace Detail {

// The descriptors of a list of views, as the C API takes them.
class Operands {
 public:
  Operands(const View *views, std::size_t n) {
    if (n > sizeof few_ / sizeof few_[0]) many_.resize(n);
    DLTensor **at = n > sizeof few_ / sizeof few_[0] ? many_.data() : few_;
    for (std::size_t i = 0; i < n; i++) at[i] = const_cast<DLTensor *>(&views[i].tensor()); // only read
    at_ = at;
    n_ = static_cast<std::int32_t>(n);
  }
  Operands(const Operands &) = delete;
  Operands &operator=(const Operands &) = delete;
  DLTensor *const *at() const noexcept { return at_; }
  std::int32_t n() const noexcept { return n_; }

 private:
  DLTensor *few_[8];
  std::vector<DLTensor *> many_;
  DLTensor *const *at_;
  std::int32_t n_;
};

} // namespace Detail

// A list of views: {x, y}, a vector of them, or none. It borrows the list.
class Views {
 public:
  Views() = default;
  Views(std::initializer_list<View> list) : Views(list.begin(), list.size()) {}
  Views(const std::vector<View> &list) : at_(list.data()), n_(list.size()) {}
  Views(const View *at, std::size_t n) : at_(at), n_(n) {}
  const View *at() const noexcept { return at_; }
  std::size_t size() const noexcept { return n_; }

 private:
  const View *at_ = nullptr;
  std::size_t n_ = 0;
};

// ---- Parameters ----------------------------------------------------------------------------------------------------------------

// The axes of a call, counted as NumPy's: Axes{0, -1} are the first and the last, Axes::all() are all. Each is checked at the call,
// against the number of dimensions that the inputs have together. A whole number is not converted: of C's API it is a bit mask.
class Axes {
 public:
  constexpr Axes(std::initializer_list<int> axes) {
    for (const int axis : axes) {
      std::uint32_t &bits = axis < 0 ? from_end_ : from_begin_;
      const int place = axis < 0 ? -1 - axis : axis;
      const std::uint32_t bit = place < QUERN_MAX_NDIM ? std::uint32_t{1} << place : 0;
      if (failure_ == None && (bit == 0 || (bits & bit) != 0)) {
        failure_ = bit == 0 ? Beyond : Twice;
        axis_ = axis;
      }
      bits |= bit;
    }
  }
  static constexpr Axes all() noexcept {
    Axes axes{};
    axes.is_all_ = true;
    return axes;
  }

  // C's bit mask of them for operands of this many dimensions: a bit for each, -1 for all. ARGUMENT for an axis that is out of bounds or
  // given twice. op: the name that the sentence begins with
  Status try_mask(const std::string &op, std::int32_t ndim, std::int64_t &mask) const {
    if (failure_ != None) return refuse(op, ndim, failure_, axis_);
    mask = -1;
    if (ndim > QUERN_MAX_NDIM) return Status(); // the call refuses its operands
    std::uint32_t bits = 0;
    for (int place = 0; place < QUERN_MAX_NDIM; place++) {
      if ((from_begin_ >> place & 1) != 0) {
        if (place >= ndim) return refuse(op, ndim, Beyond, place);
        bits |= std::uint32_t{1} << place;
      }
    }
    for (int place = 0; place < QUERN_MAX_NDIM; place++) {
      if ((from_end_ >> place & 1) != 0) {
        if (place >= ndim) return refuse(op, ndim, Beyond, -1 - place);
        const std::uint32_t bit = std::uint32_t{1} << (ndim - 1 - place);
        if ((bits & bit) != 0) return refuse(op, ndim, Twice, -1 - place);
        bits |= bit;
      }
    }
    mask = is_all_ ? -1 : static_cast<std::int64_t>(bits);
    return Status();
  }

 private:
  enum Failure { None, Beyond, Twice };
  static Status refuse(const std::string &op, std::int32_t ndim, Failure failure, int axis) {
    const std::string text = op + ": axis " + std::to_string(axis);
    if (failure == Twice) return Status(QUERN_E_ARGUMENT, text + " is given twice");
    const std::string bounds = ndim > 0 ? ": expected " + std::to_string(-ndim) + " to " + std::to_string(ndim - 1) : "";
    return Status(QUERN_E_ARGUMENT, text + " is out of bounds for " + std::to_string(ndim) + (ndim == 1 ? " dimension" : " dimensions") + bounds);
  }

  std::uint32_t from_begin_ = 0, from_end_ = 0; // bit k: axis k; axis -1 - k
  Failure failure_ = None;                      // the first one that no number of dimensions allows
  int axis_ = 0;
  bool is_all_ = false;
};

// A value for a parameter: a number, which the op converts to its compute dtype; axes; or a number as the C API takes it.
class Number {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Number(T x) : kind_(Plain) {
    if constexpr (std::is_floating_point_v<T>)
      scalar_ = quern_scalar_f64(static_cast<double>(x));
    else if constexpr (std::is_signed_v<T>)
      scalar_ = quern_scalar_i64(static_cast<std::int64_t>(x));
    else
      scalar_ = quern_scalar_u64(static_cast<std::uint64_t>(x));
  }
  Number(const Axes &axes) : kind_(OfAxes), scalar_(quern_scalar_i64(-1)), axes_(axes) {}
  // C's number; of the parameter axes its bit mask.
  Number(const quern_scalar &scalar) : kind_(Exact), scalar_(scalar) {}

  // The number for a parameter of this role (QUERN_ROLE_*) and name, of an op with inputs of `ndim` dimensions.
  Status try_scalar(const std::string &op, std::string_view name, std::int32_t role, std::int32_t ndim, quern_scalar &scalar) const {
    const bool has_axes = role == QUERN_ROLE_AXES || role == QUERN_ROLE_AXIS;
    scalar = scalar_;
    if (has_axes == (kind_ == OfAxes) || kind_ == Exact) {
      if (kind_ != OfAxes) return Status();
      std::int64_t mask = 0;
      Status status = axes_.try_mask(op, ndim, mask);
      scalar = quern_scalar_i64(mask);
      return status;
    }
    const std::string text = op + ": " + std::string(name);
    return Status(QUERN_E_ARGUMENT, has_axes ? text + " is a plain number, an axis or a bit mask: write Axes{1}, Axes{-1} for the last, Axes::all(), "
                                                      "or a scalar of the C API for a bit mask"
                                             : text + " is a number: it takes no Axes");
  }

 private:
  enum Kind { Plain, Exact, OfAxes };
  Kind kind_;
  quern_scalar scalar_;
  Axes axes_{};
};

// A parameter by its name.
struct Param {
  std::string_view name;
  Number value;
};

// What a call may have beside its operands: parameters, {{"min", 0}, {"max", 6}} or {{"axes", Axes{-1}}, {"keepdims", 1}}; a device's
// stream; workspace.
class Call {
 public:
  Call() = default;
  Call(std::initializer_list<Param> params) : params_(params) {}
  // Each sets one thing and returns the call. stream: the device's; workspace: memory of the device, of OpRef::workspace bytes
  Call &stream(void *stream) { return stream_ = stream, *this; }
  Call &workspace(void *memory, std::size_t bytes) { return workspace_ = memory, bytes_ = bytes, *this; }
  Call &param(std::string_view name, Number value) { return params_.push_back({name, value}), *this; }

 private:
  friend class OpRef;
  friend class Plan;
  std::vector<Param> params_;
  void *stream_ = nullptr;
  void *workspace_ = nullptr;
  std::size_t bytes_ = 0;
};

// ---- Contexts ------------------------------------------------------------------------------------------------------------------

// Options with their size set, otherwise the defaults.
inline quern_options Options() {
  quern_options options{};
  options.size = sizeof options;
  return options;
}

// A set of ops and the threads that run them. Default-constructed: the process-wide context.
class Context {
 public:
  Context() = default;
  explicit Context(const quern_options &options) : Context(try_make(options).value()) {}
  Context(Context &&other) noexcept : ctx_(std::exchange(other.ctx_, nullptr)) {}
  Context &operator=(Context &&other) noexcept { return std::swap(ctx_, other.ctx_), *this; }
  ~Context() { quern_ctx_release(ctx_); }

  static Result<Context> try_make(const quern_options &options) {
    Context made;
    const Status status = Status::of(quern_ctx_create(&options, &made.ctx_));
    if (!status) return status;
    return made;
  }
  // What the C API takes; NULL: the process-wide context. Borrowed.
  quern_ctx *get() const noexcept { return ctx_; }
  // The names of its ops, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::int32_t i = 0; i < quern_op_count(ctx_); i++) {
      quern_op *op = nullptr;
      if (quern_op_at(ctx_, i, &op) != QUERN_OK) continue;
      names.emplace_back(quern_op_describe(op)->name);
      quern_op_release(op);
    }
    return names;
  }
  // An op of the caller's becomes one of this context.
  Status try_add(const quern_op_def &def) const { return Status::of(quern_op_register(ctx_, &def)); }
  void add(const quern_op_def &def) const { try_add(def).value(); }
  // <run time>
  // The ops of a spec file, or of a text, become ops of this context, not of the process-wide one.
  Status try_load_spec(const std::string &path) const {
    const Status status = Detail::no_zero(path, "a path");
    return status ? Status::of(quern_spec_load(ctx_, path.c_str())) : status;
  }
  void load_spec(const std::string &path) const { try_load_spec(path).value(); }
  Status try_load_spec_text(const std::string &name, std::string_view text) const {
    return Status::of(quern_spec_load_text(ctx_, name.c_str(), text.data(), text.size()));
  }
  void load_spec_text(const std::string &name, std::string_view text) const { try_load_spec_text(name, text).value(); }
  // </run time>

 private:
  quern_ctx *ctx_ = nullptr;
};

// ---- Ops -----------------------------------------------------------------------------------------------------------------------

class Plan;

// An op that something else keeps alive. Copies are cheap.
class OpRef {
 public:
  explicit OpRef(quern_op *op) noexcept : op_(op) {}
  // What the C API takes. Borrowed.
  quern_op *get() const noexcept { return op_; }
  // Name, documentation, operands, parameters; valid as long as the op.
  const quern_op_info &info() const noexcept { return *quern_op_describe(op_); }

  // Computes. Returns when the outputs are written (CPU) or the work is on the stream.
  Status try_call(const Views &in, const Views &out, const Call &call = Call()) const {
    Bound bound;
    const Status status = bind(call, in, out, bound);
    if (!status) return status;
    const Detail::Operands ins(in.at(), in.size()), outs(out.at(), out.size());
    return Status::of(quern_op_call(op_, ins.n(), ins.at(), outs.n(), outs.at(), &bound.call));
  }
  void operator()(const Views &in, const Views &out, const Call &call = Call()) const { try_call(in, out, call).value(); }

  // The shapes, strides and dtypes of the outputs, for memory of the caller's. It reads values only for ops with shapes that depend on values.
  Result<std::vector<quern_shape>> try_shapes(const Views &in, const Call &call = Call()) const {
    Bound bound;
    Status status = bind(call, in, Views(), bound);
    if (!status) return status;
    const Detail::Operands ins(in.at(), in.size());
    std::vector<quern_shape> shapes(static_cast<std::size_t>(info().n_out));
    for (quern_shape &shape : shapes) shape.size = sizeof shape;
    status = Status::of(quern_op_measure(op_, ins.n(), ins.at(), info().n_out, shapes.data(), &bound.call));
    if (!status) return status;
    return shapes;
  }
  std::vector<quern_shape> shapes(const Views &in, const Call &call = Call()) const { return try_shapes(in, call).value(); }

  // The bytes of workspace that a call can use.
  Result<std::size_t> try_workspace(const Views &in, const Views &out, const Call &call = Call()) const {
    Bound bound;
    Status status = bind(call, in, out, bound);
    std::size_t bytes = 0;
    const Detail::Operands ins(in.at(), in.size()), outs(out.at(), out.size());
    if (status) status = Status::of(quern_op_workspace(op_, ins.n(), ins.at(), outs.n(), outs.at(), &bound.call, &bytes));
    if (!status) return status;
    return Result<std::size_t>(std::move(bytes));
  }
  std::size_t workspace(const Views &in, const Views &out, const Call &call = Call()) const {
    return try_workspace(in, out, call).value();
  }

  // How a call with these operands would run: lines of `key: value`.
  Result<std::string> try_explain(const Views &in, const Views &out, const Call &call = Call()) const {
    Bound bound;
    Status status = bind(call, in, out, bound);
    if (!status) return status;
    const Detail::Operands ins(in.at(), in.size()), outs(out.at(), out.size());
    std::string text(4096, '\0');
    while (true) {
      const quern_status code = quern_op_explain(op_, ins.n(), ins.at(), outs.n(), outs.at(), &bound.call, &text[0], text.size());
      if (code == QUERN_E_LIMIT && text.size() < std::size_t{1} << 24) {
        text.resize(2 * text.size());
        continue;
      }
      status = Status::of(code);
      if (!status) return status;
      text.resize(std::strlen(text.c_str()));
      return text;
    }
  }
  std::string explain(const Views &in, const Views &out, const Call &call = Call()) const { return try_explain(in, out, call).value(); }

  // All checks and choices of a call, done once.
  Result<Plan> try_prepare(const Views &in, const Views &out, const Call &call = Call()) const;
  Plan prepare(const Views &in, const Views &out, const Call &call = Call()) const;

 protected:
  quern_op *op_;

 private:
  // A call's struct and what it points to.
  struct Bound {
    quern_call call;
    std::vector<quern_scalar> params;
    std::vector<std::uint64_t> flags;
  };

  // Puts parameters in the declared order; those that are not named keep their defaults.
  Status bind(const Call &call, const Views &in, const Views &out, Bound &bound) const {
    if (op_ == nullptr) return Status(QUERN_E_ARGUMENT, "an op that was moved away, or for which there was no memory");
    bound.call = quern_call{};
    bound.call.size = sizeof bound.call;
    bound.call.stream = call.stream_;
    bound.call.workspace = call.workspace_;
    bound.call.workspace_bytes = call.bytes_;
    for (std::size_t i = 0; i < out.size(); i++) {
      if (out.at()[i].flags() == 0) continue;
      bound.flags.resize(out.size());
      bound.flags[i] = out.at()[i].flags();
    }
    bound.call.out_flags = bound.flags.empty() ? nullptr : bound.flags.data();
    if (call.params_.empty()) return Status();
    const quern_op_info &about = info();
    for (std::int32_t i = 0; i < about.n_params; i++) bound.params.push_back(about.params[i].value);
    for (const Param &param : call.params_) {
      std::int32_t at = 0;
      while (at < about.n_params && param.name != about.params[at].name) at++;
      if (at == about.n_params) return no_param(about, param.name);
      std::int32_t ndim = 0; // of the shape that the inputs are broadcast to
      for (std::size_t i = 0; i < in.size(); i++) ndim = in.at()[i].tensor().ndim > ndim ? in.at()[i].tensor().ndim : ndim;
      const Status status = param.value.try_scalar(about.name, param.name, quern_param_role(&about, at), ndim, bound.params[static_cast<std::size_t>(at)]);
      if (!status) return status;
    }
    bound.call.params = bound.params.data();
    bound.call.n_params = about.n_params;
    return Status();
  }
  static Status no_param(const quern_op_info &about, std::string_view name) {
    std::string text = std::string(about.name) + ": no parameter " + std::string(name) + "; it has ";
    for (std::int32_t i = 0; i < about.n_params; i++) text += (i > 0 ? ", " : "") + std::string(about.params[i].name);
    return Status(QUERN_E_ARGUMENT, about.n_params > 0 ? text : text + "none");
  }
};

// An op, found by its name, with a reference of its own.
class Op : public OpRef {
 public:
  explicit Op(const std::string &name, const Context &ctx = Context()) : Op(try_find(name, ctx).value()) {}
  // Takes over the caller's reference.
  explicit Op(quern_op *owned) noexcept : OpRef(owned) {}
  Op(Op &&other) noexcept : OpRef(std::exchange(other.op_, nullptr)) {}
  Op &operator=(Op &&other) noexcept { return std::swap(op_, other.op_), *this; }
  ~Op() { quern_op_release(op_); }

  static Result<Op> try_find(const std::string &name, const Context &ctx = Context()) {
    quern_op *op = nullptr;
    Status status = Detail::no_zero(name, "the name of an op");
    if (status) status = Status::of(quern_op_find(ctx.get(), name.c_str(), &op));
    if (!status) return status;
    return Op(op);
  }
};

// ---- Plans ---------------------------------------------------------------------------------------------------------------------

// A prepared call. It keeps its parameters and the op, but no pointers.
class Plan {
 public:
  explicit Plan(quern_plan *owned) noexcept : plan_(owned) {}
  // Of an op of so many inputs and outputs, which its runs are checked by.
  Plan(quern_plan *owned, std::int32_t n_in, std::int32_t n_out) noexcept : plan_(owned), n_in_(n_in), n_out_(n_out) {}
  Plan(Plan &&other) noexcept : plan_(std::exchange(other.plan_, nullptr)), n_in_(other.n_in_), n_out_(other.n_out_) {}
  Plan &operator=(Plan &&other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(n_in_, other.n_in_);
    std::swap(n_out_, other.n_out_);
    return *this;
  }
  ~Plan() { quern_plan_release(plan_); }

  // Runs on these addresses (byte_offset included) of tensors that are otherwise as prepared, with the prepared parameters; only the
  // stream and the workspace of `call` are read.
  Status try_run(std::initializer_list<const void *> in, std::initializer_list<void *> out, const Call &call = Call()) const {
    if (n_in_ >= 0 && (in.size() != static_cast<std::size_t>(n_in_) || out.size() != static_cast<std::size_t>(n_out_)))
      return Status(QUERN_E_ARGUMENT, "a plan of " + std::to_string(n_in_) + " inputs and " + std::to_string(n_out_) + " outputs, given " +
                                          std::to_string(in.size()) + " and " + std::to_string(out.size()));
    quern_call own{};
    own.size = sizeof own;
    own.stream = call.stream_;
    own.workspace = call.workspace_;
    own.workspace_bytes = call.bytes_;
    return Status::of(quern_plan_run(plan_, const_cast<void *const *>(in.begin()), out.begin(), &own));
  }
  void run(std::initializer_list<const void *> in, std::initializer_list<void *> out, const Call &call = Call()) const {
    try_run(in, out, call).value();
  }
  // What the C API takes. Borrowed.
  quern_plan *get() const noexcept { return plan_; }

 private:
  quern_plan *plan_;
  std::int32_t n_in_ = -1, n_out_ = -1; // -1: not known
};

inline Result<Plan> OpRef::try_prepare(const Views &in, const Views &out, const Call &call) const {
  Bound bound;
  Status status = bind(call, in, out, bound);
  quern_plan *plan = nullptr;
  const Detail::Operands ins(in.at(), in.size()), outs(out.at(), out.size());
  if (status) status = Status::of(quern_op_prepare(op_, ins.n(), ins.at(), outs.n(), outs.at(), &bound.call, &plan));
  if (!status) return status;
  return Plan(plan, ins.n(), outs.n());
}
inline Plan OpRef::prepare(const Views &in, const Views &out, const Call &call) const { return try_prepare(in, out, call).value(); }

// <run time>
// ---- Expressions ---------------------------------------------------------------------------------------------------------------

// An op from an expression: Expression f("y = gelu(x + b)"); f({x, b}, {y});
class Expression : public Op {
 public:
  explicit Expression(const std::string &text, const Context &ctx = Context()) : Op(try_compile(text, ctx).value()) {}
  static Result<Op> try_compile(const std::string &text, const Context &ctx = Context()) {
    quern_op *op = nullptr;
    Status status = Detail::no_zero(text, "an expression");
    if (status) status = Status::of(quern_op_compile(ctx.get(), text.c_str(), &op));
    if (!status) return status;
    return Op(op);
  }
};
// </run time>

} // namespace quern

#endif /* QUERN_QUERN_HPP */
