#include "tuner/measure/cell_call.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace opmux::tuner {
namespace {

using conformance::Case;
using conformance::CaseArgument;

constexpr size_t kAlignment = 64;

bool is_present(const CaseArgument& argument) { return argument.is_tensor() && argument.present; }
bool is_constant(const CaseArgument& argument) {
  return is_present(argument) && argument.info->constant;
}

uint64_t bytes_of(const CaseArgument& argument) {
  return static_cast<uint64_t>(argument.tensor.elements() * argument.tensor.dtype.size_bytes());
}

struct Scalar {
  ArgTag tag = ArgTag::integer;
  int64_t i64 = 0;
  double f64 = 0;
};

/// The scalar that a call passes. A default is passed as a value, because a plan is not bound for
/// an argument in the place of which its default was taken. Words of an enum are passed by their
/// position.
std::optional<Scalar> scalar_of(const CaseArgument& argument) {
  const ArgumentInfo& info = *argument.info;
  if (argument.is_tensor() || (!argument.present && info.default_text.empty())) return {};
  Scalar scalar{ArgTag::integer, argument.i64, argument.f64};
  if (info.type == ArgTag::floating) scalar.tag = ArgTag::floating;
  if (info.type == ArgTag::logical) scalar.tag = ArgTag::logical;
  if (argument.present) return scalar;
  const std::string& text = info.default_text;
  if (info.type == ArgTag::enumeration) {
    scalar.i64 = std::ranges::find(info.words, text) - info.words.begin();
  } else if (info.type == ArgTag::logical) {
    scalar.i64 = text == "true" ? 1 : 0;
  } else {
    const char* const end = text.data() + text.size();
    std::from_chars(text.data(), end, scalar.f64);
    std::from_chars(text.data(), end, scalar.i64);
  }
  return scalar;
}

/// Policy under which only this implementation runs.
Policy only(const std::string& implementation) {
  Policy policy;
  policy.require = {"impl:" + implementation};
  policy.strict = true;
  return policy;
}

}  // namespace

size_t copies_of(uint64_t constant_bytes, uint64_t output_bytes, const CopyLimits& limits) {
  const uint64_t bytes = std::max<uint64_t>(constant_bytes + output_bytes, 1);
  const uint64_t fit = std::max<uint64_t>(limits.most_bytes / bytes, 1);
  uint64_t wanted = limits.least_copies;
  if (constant_bytes > 0)
    wanted = std::max(wanted, (limits.cold_bytes + constant_bytes - 1) / constant_bytes);
  return static_cast<size_t>(std::min<uint64_t>({wanted, fit, limits.most_copies}));
}

void CellCall::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t(kAlignment));
}

Result<std::unique_ptr<CellCall>> CellCall::make(Runtime& runtime, const Operator& op,
                                                 const Case& c, const CopyLimits& limits) {
  std::unique_ptr<CellCall> call(new CellCall(op, c));
  uint64_t constants = 0, outputs = 0;
  for (const CaseArgument& argument : c.arguments) {
    if (is_constant(argument)) constants += bytes_of(argument);
    if (argument.written()) outputs += bytes_of(argument);
    const bool each = !is_present(argument) || argument.written() || is_constant(argument);
    call->shared_.push_back(each ? nullptr : call->place(argument));
  }
  for (size_t left = copies_of(constants, outputs, limits); left > 0; --left) {
    if (Status status = call->add_copy(runtime); !status.ok()) return status;
  }
  return call;
}

std::byte* CellCall::place(const CaseArgument& argument) {
  const size_t bytes = bytes_of(argument);
  auto* const memory = static_cast<std::byte*>(
      ::operator new[](std::max<size_t>(bytes, 1), std::align_val_t(kAlignment)));
  memory_.emplace_back(memory);
  if (argument.read() && argument.tensor.packed.size() == bytes) {
    std::memcpy(memory, argument.tensor.packed.data(), bytes);
  } else {
    std::memset(memory, 0, bytes);  // touches the pages of outputs
  }
  return memory;
}

Status CellCall::add_copy(Runtime& runtime) {
  Copy& copy = copies_.emplace_back();
  for (size_t i = 0; i < case_->arguments.size(); ++i) {
    const CaseArgument& argument = case_->arguments[i];
    ArgValue value{};
    opmux_arg arg{};
    ArgTag tag = ArgTag::tensor;  // also of an absent argument
    value.tensor = &detail::absent_tensor;
    if (is_present(argument)) {
      const conformance::CaseTensor& tensor = argument.tensor;
      std::byte* const memory = shared_[i] != nullptr ? shared_[i] : place(argument);
      if (argument.written()) copy.written.push_back(memory);
      const TensorView& view =
          copy.views.emplace_back(memory, tensor.dtype, tensor.shape, std::span<const int64_t>());
      value.tensor = &view;
      arg.tag = OPMUX_ARG_TENSOR;
      arg.value.tensor = &view.c();
      if (is_constant(argument)) {
        Result<Constant> constant = runtime.constant(view);
        if (!constant) return constant.error();
        copy.constants.push_back(std::move(*constant));
        tag = ArgTag::constant;
        value.tensor = &copy.constants.back().view();
        arg = copy.constants.back().argument();
      }
    } else if (const std::optional<Scalar> scalar = scalar_of(argument)) {
      tag = scalar->tag;
      arg.tag = static_cast<uint32_t>(tag);
      if (tag == ArgTag::floating) {
        arg.value.f64 = value.f64 = scalar->f64;
      } else {
        arg.value.i64 = value.i64 = scalar->i64;
      }
    }
    copy.site.push(tag);
    copy.values.push_back(value);
    copy.arguments.push_back(arg);
  }
  return {};
}

Result<Plan> CellCall::bind_copy(size_t copy) const {
  return detail::bind(op_.slot(), copies_[copy].site, copies_[copy].values.data(), false);
}

Result<Plan> CellCall::bind_first(Runtime& runtime, const std::string& implementation) const {
  const PolicyScope scope(runtime, only(implementation));
  if (!scope.status().ok()) return scope.status();
  return bind_copy(0);
}

Result<std::vector<Plan>> CellCall::bind(Runtime& runtime,
                                         const std::string& implementation) const {
  const PolicyScope scope(runtime, only(implementation));
  if (!scope.status().ok()) return scope.status();
  std::vector<Plan> plans;
  for (size_t copy = 0; copy < copies_.size(); ++copy) {
    Result<Plan> plan = bind_copy(copy);
    if (!plan) return plan.error();
    plans.push_back(std::move(*plan));
  }
  return plans;
}

Status CellCall::run(const Plan& plan, size_t copy) const {
  return Status(detail::call_plan(plan.bound(), copies_[copy].site, copies_[copy].values.data()));
}

void CellCall::restore() {
  size_t written = 0;
  for (const CaseArgument& argument : case_->arguments) {
    if (!argument.written()) continue;
    std::byte* const memory = copies_[0].written[written++];
    // NaN in every floating-point type, so that elements that are not written are noticed.
    std::memset(memory, 0xff, bytes_of(argument));
    if (argument.read()) std::memcpy(memory, argument.tensor.packed.data(), bytes_of(argument));
  }
}

std::vector<std::vector<std::byte>> CellCall::outputs() const {
  std::vector<std::vector<std::byte>> all;
  size_t written = 0;
  for (const CaseArgument& argument : case_->arguments) {
    if (!argument.written()) continue;
    const std::byte* const memory = copies_[0].written[written++];
    all.emplace_back(memory, memory + bytes_of(argument));
  }
  return all;
}

}  // namespace opmux::tuner
