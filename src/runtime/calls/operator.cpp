#include <opmux/operator.hpp>

#include <algorithm>
#include <array>
#include <deque>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "dispatch/call/argument_words.hpp"
#include "dispatch/call/call.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/explain.hpp"
#include "dispatch/plan/bound_plan.hpp"
#include "runtime/calls/c_arguments.hpp"
#include "schema/arguments.hpp"

namespace opmux {
namespace {

dispatch::CallSettings settings_of(const CallOptions& options) {
  return {options.tag.number, options.stream, options.max_threads, options.parallel_for,
          options.pool};
}

/// Replaces absent required outputs by views of the inferred shapes. Absent optional outputs stay
/// absent, because a call may omit them too.
class WithInferredOutputs {
 public:
  Status infer(const schema::Schema& schema, const CallSite& site, const ArgValue* values) {
    schema::Arguments arguments;
    if (Status status = normalise(schema, site, values, arguments); !status.ok()) return status;
    std::copy_n(values, site.count() + (site.has_instance() ? 1 : 0), values_.begin());
    site_ = site;
    const auto missing = [&](size_t i) {
      const schema::ArgSpec& arg = schema.args[i];
      return arg.is_tensor() && arg.access == schema::Access::out && !arg.optional &&
             arguments.tags[i] != ArgTag::tensor;
    };
    bool some = false;
    for (uint32_t i = 0; i < site.count(); ++i) some |= missing(i);
    if (!some) return {};
    auto outputs = infer_outputs(schema, arguments);
    if (!outputs) return outputs.error();
    for (const schema::InferredTensor& output : *outputs) {
      if (!missing(static_cast<size_t>(output.arg))) continue;
      TensorView view(nullptr, output.dtype, output.shape, {}, dispatch::device_of(arguments));
      values_[output.arg].tensor = &views_.emplace_back(view);
    }
    return {};
  }

  const CallSite& site() const { return site_; }
  const ArgValue* values() const { return values_.data(); }

 private:
  CallSite site_;
  std::array<ArgValue, schema::kMaxValues> values_{};
  std::deque<TensorView> views_;
};

}  // namespace

namespace detail {

const TensorView absent_tensor;

Status::Detail* call_with(dispatch::OperatorSlot& slot, const CallSite& site,
                          const ArgValue* values, const CallOptions& options,
                          CallReport* report) noexcept {
  return dispatch::call_with(slot, site, values, settings_of(options), report);
}

Result<Plan> bind(dispatch::OperatorSlot& slot, const CallSite& site, const ArgValue* values,
                  bool for_capture) {
  return base::or_out_of_memory([&]() -> Result<Plan> {
    auto plan = dispatch::BoundPlan::bind(slot, site, values, {{}, for_capture});
    if (!plan) return plan.error();
    return Plan(std::move(*plan));
  });
}

Explanation explain(dispatch::OperatorSlot& slot, const CallSite& site, const ArgValue* values) {
  WithInferredOutputs complete;
  Status status = complete.infer(*slot.schema, site, values);
  if (status.ok()) {
    auto explanation = dispatch::explain(slot, complete.site(), complete.values(), 0);
    if (explanation) return std::move(*explanation);
    status = explanation.error();
  }
  return dispatch::not_explained(slot, status);
}

Result<std::string> decide(dispatch::OperatorSlot& slot, const CallSite& site,
                           const ArgValue* values) {
  return base::or_out_of_memory([&]() -> Result<std::string> {
    WithInferredOutputs complete;
    if (Status status = complete.infer(*slot.schema, site, values); !status.ok()) return status;
    dispatch::CheckedArguments checked;
    Status status = dispatch::check(*slot.schema, complete.site(), complete.values(), checked);
    if (!status.ok()) return status;
    dispatch::load_waiting_plugins(slot);
    const auto found = dispatch::choose_for_plan(
        slot, checked, 0, dispatch::default_threads(slot.engine->dependencies().threads), false);
    if (!found) return found.error();
    if (found->choice->plans.empty()) return found->choice->nothing_left;
    if (!found->kept.ok()) return found->kept;
    return found->choice->plans.front().candidate->implementation->id;
  });
}

Status::Detail* call_plan(dispatch::BoundPlan& plan, const CallSite& site,
                          const ArgValue* values) noexcept {
  return plan.call(site, values);
}

template <int kTensors, int kScalars>
OPMUX_FIXED_STACK Status::Detail* call_plan_words(dispatch::BoundPlan& plan, uint64_t site,
                                                  uint64_t a, uint64_t b, uint64_t c,
                                                  uint64_t d) noexcept {
  return plan.call(site, dispatch::ArgumentWords<kTensors, kScalars>{{a, b, c, d}});
}

#define OPMUX_ENTRY(tensors, scalars)                                   \
  template OPMUX_API Status::Detail* call_plan_words<tensors, scalars>( \
      dispatch::BoundPlan&, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) noexcept;
OPMUX_FOR_ARGUMENT_WORDS(OPMUX_ENTRY)
#undef OPMUX_ENTRY

Status::Detail* run_slowly(dispatch::BoundPlan& plan) noexcept { return plan.run_slowly(); }

Status::Detail* end_plan(dispatch::BoundPlan& plan, int32_t outcome) noexcept {
  return plan.end(outcome);
}

Status set_frame(dispatch::BoundPlan& plan, const CallSite& site, const ArgValue* values) {
  return base::or_out_of_memory([&]() -> Status { return plan.set_frame(site, values); });
}

}  // namespace detail

std::string_view Operator::name() const noexcept { return slot_->name(); }
std::string Operator::schema() const { return slot_->schema->canonical(); }

Explanation Operator::explain_arguments(std::span<const opmux_arg> arguments) const {
  runtime::CArguments read;
  const Status status(
      read.read(*slot_->schema, arguments.data(), static_cast<uint32_t>(arguments.size())));
  if (!status.ok()) return dispatch::not_explained(*slot_, status);
  return detail::explain(*slot_, read.site(), read.values());
}

Result<std::string> Operator::decide_arguments(std::span<const opmux_arg> arguments) const {
  return base::or_out_of_memory([&]() -> Result<std::string> {
    runtime::CArguments read;
    Status status(
        read.read(*slot_->schema, arguments.data(), static_cast<uint32_t>(arguments.size())));
    if (!status.ok()) return status;
    return detail::decide(*slot_, read.site(), read.values());
  });
}

Result<std::vector<OutputInfo>> Operator::infer_outputs(
    std::span<const opmux_arg> arguments) const {
  return base::or_out_of_memory([&]() -> Result<std::vector<OutputInfo>> {
    runtime::CArguments read;
    Status status(
        read.read(*slot_->schema, arguments.data(), static_cast<uint32_t>(arguments.size())));
    schema::Arguments normal;
    if (status.ok()) status = normalise(*slot_->schema, read.site(), read.values(), normal);
    if (!status.ok()) return status;
    auto outputs = schema::infer_outputs(*slot_->schema, normal);
    if (!outputs) return outputs.error();
    std::vector<OutputInfo> all;
    for (schema::InferredTensor& output : *outputs) {
      all.push_back({static_cast<size_t>(output.arg), output.dtype, dispatch::device_of(normal),
                     std::move(output.shape)});
    }
    return all;
  });
}

Status Operator::call_arguments(std::span<const opmux_arg> arguments) const {
  runtime::CArguments read;
  Status::Detail* failure =
      read.read(*slot_->schema, arguments.data(), static_cast<uint32_t>(arguments.size()));
  if (failure == nullptr) failure = dispatch::call(*slot_, read.site(), read.values());
  return Status(failure);
}

Status Operator::call_arguments(std::span<const opmux_arg> arguments, const CallOptions& options,
                                CallReport* report) const {
  runtime::CArguments read;
  Status status(
      read.read(*slot_->schema, arguments.data(), static_cast<uint32_t>(arguments.size())));
  if (status.ok()) {
    status = Status(detail::call_with(*slot_, read.site(), read.values(), options, report));
  }
  if (report != nullptr) report->outcome = status.code();
  return status;
}

namespace {

std::vector<std::string> dims_of(const schema::Schema& schema, const schema::ArgSpec& spec) {
  std::vector<std::string> dims;
  if (spec.leading) dims.emplace_back("...");
  for (const schema::DimSpec& dim : spec.dims) {
    dims.push_back(dim.name < 0 ? std::to_string(dim.constant)
                                : schema.dims[static_cast<size_t>(dim.name)]);
  }
  return dims;
}

ArgumentInfo info_of(const schema::Schema& schema, const schema::ArgSpec& spec) {
  ArgumentInfo info{spec.name, schema::tag_of(spec.type), spec.omittable(),
                    spec.access == schema::Access::out, spec.words};
  info.updated = spec.access == schema::Access::inout;
  info.any_shape = spec.any_shape;
  info.dims = dims_of(schema, spec);
  if (spec.dtype_variable >= 0) {
    info.dtype_variable = schema.dtype_variables[static_cast<size_t>(spec.dtype_variable)];
  }
  info.constant = spec.constant;
  info.default_text = spec.default_text();
  info.integer = spec.integer;
  if (spec.alias_of >= 0) info.may_alias = schema.args[static_cast<size_t>(spec.alias_of)].name;
  return info;
}

}  // namespace

std::vector<ArgumentInfo> Operator::arguments() const {
  std::vector<ArgumentInfo> all;
  for (const schema::ArgSpec& spec : slot_->schema->args) {
    all.push_back(info_of(*slot_->schema, spec));
  }
  return all;
}

Result<size_t> Operator::position(std::string_view argument) const {
  return base::or_out_of_memory([&] { return schema::find_argument(*slot_->schema, argument); });
}

Plan::Plan(detail::Owned<dispatch::BoundPlan> plan) : plan_(std::move(plan)), hot_(&plan_->hot()) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

void Plan::set_stream(void* stream) noexcept { plan_->set_stream(stream); }
Plan::State Plan::state() const noexcept { return static_cast<State>(plan_->state()); }
Status Plan::refresh() {
  return base::or_out_of_memory([&]() -> Status {
    auto rebound = plan_->bound_again();
    if (!rebound) return rebound.error();
    plan_ = std::move(*rebound);
    hot_ = &plan_->hot();
    return {};
  });
}
const std::string& Plan::implementation() const noexcept {
  return plan_->control().implementation->id;
}
uint64_t Plan::generation() const noexcept { return plan_->generation(); }

}  // namespace opmux
