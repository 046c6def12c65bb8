#include <opmux/instance.hpp>

#include <algorithm>

#include "base/memory.hpp"
#include "dispatch/call/call.hpp"
#include "dispatch/explain.hpp"
#include "runtime/calls/operator_instance.hpp"

namespace opmux {
namespace detail {

Status::Detail* call_instance(const runtime::OperatorInstance& instance, const CallSite& site,
                              const ArgValue* values) noexcept {
  runtime::OperatorInstance::Values all;
  Status::Detail* const failure =
      base::or_out_of_memory([&] { return instance.complete(site, values, all); });
  if (failure != nullptr) [[unlikely]]
    return failure;
  return dispatch::call_with_constants(instance.slot(), all.site, all.values);
}

Status::Detail* call_instance_with(const runtime::OperatorInstance& instance, const CallSite& site,
                                   const ArgValue* values, const CallOptions& options,
                                   CallReport* report) noexcept {
  runtime::OperatorInstance::Values all;
  Status::Detail* failure =
      base::or_out_of_memory([&] { return instance.complete(site, values, all); });
  if (failure == nullptr)
    failure = call_with(instance.slot(), all.site, all.values, options, report);
  if (report != nullptr) report->outcome = failure == nullptr ? Code::ok : failure->code;
  return failure;
}

Explanation explain_instance(const runtime::OperatorInstance& instance, const CallSite& site,
                             const ArgValue* values) {
  runtime::OperatorInstance::Values all;
  const Status status(instance.complete(site, values, all));
  if (!status.ok()) return dispatch::not_explained(instance.slot(), status);
  return explain(instance.slot(), all.site, all.values);
}

Result<Instance> make_instance(dispatch::OperatorSlot& slot, std::span<const NamedArgument> named) {
  return base::or_out_of_memory([&]() -> Result<Instance> {
    auto made = runtime::OperatorInstance::make(slot, named);
    if (!made) return made.error();
    return Instance(*std::move(made));
  });
}

}  // namespace detail

Result<Instance> Operator::instance(std::initializer_list<NamedArgument> fixed) const {
  return detail::make_instance(*slot_, {fixed.begin(), fixed.size()});
}
Result<Instance> Operator::instance(std::span<const NamedArgument> fixed) const {
  return detail::make_instance(*slot_, fixed);
}

Instance::Instance(detail::Shared<runtime::OperatorInstance> owner) noexcept
    : owner_(std::move(owner)) {}
Instance::Instance(Instance&& other) noexcept = default;
Instance& Instance::operator=(Instance&& other) noexcept {
  if (this == &other) return *this;
  const Instance before(std::move(*this));
  owner_ = std::move(other.owner_);
  return *this;
}
Instance::~Instance() {
  if (owner_ != nullptr) owner_->release();
}

Status Instance::call_arguments(std::span<const opmux_arg> arguments, const CallOptions& options,
                                CallReport* report) const {
  runtime::CArguments read;
  Status::Detail* failure =
      read.read(owner_->schema(), arguments.data(), static_cast<uint32_t>(arguments.size()));
  if (failure == nullptr)
    failure = detail::call_instance_with(*owner_, read.site(), read.values(), options, report);
  if (report != nullptr) report->outcome = failure == nullptr ? Code::ok : failure->code;
  return Status(failure);
}

Explanation Instance::explain_arguments(std::span<const opmux_arg> arguments) const {
  runtime::CArguments read;
  const Status status(
      read.read(owner_->schema(), arguments.data(), static_cast<uint32_t>(arguments.size())));
  if (!status.ok()) return dispatch::not_explained(owner_->slot(), status);
  return detail::explain_instance(*owner_, read.site(), read.values());
}

void Instance::reset() { owner_->changed(); }

std::vector<InstanceState> Instance::states() const {
  std::vector<InstanceState> all;
  owner_->each([&](const dispatch::Pack& pack) {
    all.push_back({pack.implementation()->id, pack.bytes(), pack.attributes()});
  });
  return all;
}

std::vector<std::string> Instance::arguments() const {
  std::vector<std::string> names;
  for (const uint8_t i : owner_->passed()) names.push_back(owner_->schema().args[i].name);
  return names;
}

Result<Instance> instance_for(const Operator& op, std::span<const opmux_arg> arguments,
                              std::vector<opmux_arg>& passed) {
  const schema::Schema& schema = *op.slot().schema;
  std::vector<NamedArgument> fixed;
  for (size_t i = 0; i < std::min(arguments.size(), schema.args.size()); ++i) {
    const bool tensors =
        schema.args[i].is_tensor() || schema.args[i].type == schema::ArgType::tensor_list;
    const bool given = arguments[i].tag != OPMUX_ARG_NONE;
    if (given && (!tensors || schema.args[i].constant))
      fixed.emplace_back(schema.args[i].name, arguments[i]);
  }
  auto made = op.instance(fixed);
  if (!made) return made;
  passed.clear();
  for (const uint8_t i : made->owner().passed()) {
    passed.push_back(i < arguments.size() ? arguments[i] : opmux_arg{});
  }
  return made;
}

}  // namespace opmux
