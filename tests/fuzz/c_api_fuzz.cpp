// The C API with arbitrary arguments: tensors of any shape over valid memory, arbitrary tokens and
// names. Every failure must have a message.
#include <array>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include <opmux/opmux.h>

#include "byte_source.hpp"

namespace opmux::fuzz {
namespace {

constexpr std::array<const char*, 6> kOperators{"rms_norm", "softmax",      "silu_and_mul",
                                                "matmul",   "gelu_and_mul", "no_such_operator"};

/// Data of the tensors: larger than any tensor, except those whose declared size must be refused.
std::vector<uint64_t>& memory() {
  static auto* const bytes = new std::vector<uint64_t>(1 << 16);
  return *bytes;
}

class Caller {
 public:
  explicit Caller(ByteSource& bytes) : bytes_(bytes) {}

  void run(opmux_runtime* runtime) {
    for (int i = 0; i < 8; ++i) step(runtime);
    while (pushed_-- > 0) expect(opmux_scope_pop(&error()));
    expect(opmux_policy_reset(runtime, &error()));
  }

 private:
  opmux_error& error() {
    error_ = opmux_error_of(text_.data(), text_.size());
    return error_;
  }
  /// A failure must have a message.
  void expect(int32_t outcome) {
    if (outcome != OPMUX_OK && error_.text_size == 0) std::abort();
  }

  void step(opmux_runtime* runtime) {
    switch (bytes_.pick(8)) {
      case 0: return set_policy(runtime);
      case 1: return push_scope(runtime);
      case 2: return read_texts(runtime);
      default: return call(runtime);
    }
  }

  opmux_str text() {
    constexpr std::array<const char*, 11> kWords{
        "reference",  "vendor", "vendor:acme", "*/*.*",      "rms_norm/reference.scalar",
        "impl:a/b.c", "",       "*",           "contiguous", "widen",
        "none"};
    if (!bytes_.rarely()) return opmux_str_of(kWords[bytes_.pick(kWords.size())]);
    std::string& made = texts_.emplace_back();
    for (uint32_t n = bytes_.pick(16); n > 0; --n) made.push_back(bytes_.take<char>());
    return {made.data(), made.size()};
  }
  opmux_str_list list() {
    std::vector<opmux_str>& made = lists_.emplace_back();
    for (uint32_t n = bytes_.pick(3); n > 0; --n) made.push_back(text());
    return {made.data(), made.size()};
  }
  opmux_policy policy() {
    opmux_policy made{};
    made.struct_size = sizeof(made);
    made.strict = bytes_.pick(4);
    made.prefer = list(), made.require = list(), made.deny = list(), made.allow = list();
    made.allow_vendors = list(), made.deny_vendors = list();
    if (bytes_.rarely()) made.transforms = list();
    return made;
  }

  void set_policy(opmux_runtime* runtime) {
    const opmux_policy made = policy();
    expect(opmux_policy_set(runtime, &made, &error()));
  }
  void read_texts(opmux_runtime* runtime) {
    expect(opmux_condition_check(text(), &error()));
    std::array<char, 64> found{};
    size_t size = 0;
    expect(opmux_policy_check(runtime, text(), text(), bytes_.pick(4), found.data(), found.size(),
                              &size, &error()));
    expect(opmux_policy_load(runtime, text(), text(), &error()));
  }
  void push_scope(opmux_runtime* runtime) {
    const opmux_policy made = policy();
    const int32_t outcome = opmux_scope_push(runtime, &made, &error());
    expect(outcome);
    if (outcome == OPMUX_OK) ++pushed_;
  }

  /// The product of the sizes is within memory(), or so large that the call must be refused.
  const opmux_tensor* tensor() {
    opmux_tensor& made = tensors_.emplace_back();
    int64_t* const shape = shapes_.emplace_back().data();
    made = {};
    made.data = memory().data();
    made.ndim = static_cast<int32_t>(bytes_.pick(5));
    for (int32_t d = 0; d < made.ndim; ++d) shape[d] = bytes_.pick(12);
    if (bytes_.rarely() && made.ndim > 0) shape[0] = -1;
    made.shape = shape;
    constexpr std::array<opmux_dtype, 4> kTypes{{{OPMUX_DTYPE_FLOAT, 32, 1},
                                                 {OPMUX_DTYPE_FLOAT, 16, 1},
                                                 {OPMUX_DTYPE_BFLOAT, 16, 1},
                                                 {OPMUX_DTYPE_INT, 64, 1}}};
    made.dtype = kTypes[bytes_.pick(4)];
    made.device.type = bytes_.rarely() ? bytes_.take<int32_t>() : OPMUX_DEVICE_CPU;
    return &made;
  }
  opmux_arg argument() {
    switch (bytes_.pick(8)) {
      case 0: return opmux_arg_none();
      case 1: return opmux_arg_f64(bytes_.take<double>());
      case 2: return opmux_arg_i64(bytes_.take<int64_t>());
      case 3: return opmux_arg_str(text());
      default: return opmux_arg_tensor(tensor());
    }
  }

  void call(opmux_runtime* runtime) {
    opmux_operator* op = nullptr;
    const int32_t found = opmux_operator_get(
        runtime, opmux_str_of(kOperators[bytes_.pick(kOperators.size())]), &op, &error());
    expect(found);
    if (found != OPMUX_OK) return;
    std::vector<opmux_arg> args;
    for (uint32_t n = bytes_.pick(7); n > 0; --n) args.push_back(argument());
    const auto count = static_cast<uint32_t>(args.size());
    expect(opmux_call_operator(op, args.data(), count, &error()));
    opmux_plan* plan = nullptr;
    if (opmux_plan_bind(op, args.data(), count, 0, &plan, &error()) != OPMUX_OK) return;
    expect(opmux_plan_call(plan, args.data(), count, &error()));
    opmux_plan_destroy(plan);
  }

  ByteSource& bytes_;
  std::array<char, 256> text_{};
  opmux_error error_{};
  int pushed_ = 0;
  std::deque<std::string> texts_;
  std::deque<std::vector<opmux_str>> lists_;
  std::deque<opmux_tensor> tensors_;
  std::deque<std::array<int64_t, OPMUX_MAX_RANK>> shapes_;
};

opmux_runtime* runtime() {
  static opmux_runtime* const one = [] {
    static const opmux_variable kNone{};
    opmux_options options{};
    options.struct_size = sizeof(options);
    options.flags = OPMUX_OPTION_NO_BACKENDS;
    options.environment = &kNone;
    opmux_runtime* made = nullptr;
    opmux_error error = OPMUX_ERROR_INIT;
    if (opmux_runtime_create(&options, &made, &error) != OPMUX_OK) std::abort();
    return made;
  }();
  return one;
}

}  // namespace
}  // namespace opmux::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmux::fuzz::ByteSource bytes(data, size);
  opmux::fuzz::Caller(bytes).run(opmux::fuzz::runtime());
  return 0;
}
