#include "runtime/calls/operator_instance.hpp"

#include "base/text.hpp"
#include "dispatch/call/call_check.hpp"
#include "dispatch/call/call_frame.hpp"
#include "dispatch/engine.hpp"

namespace opmux::runtime {
namespace {

Status bad_argument(const schema::Schema& schema, std::string_view reason,
                    std::string_view argument, std::string_view why) {
  return {Code::invalid_argument, std::string(reason),
          base::concat("instance of ", schema.name, ": '", argument, "' ", why)};
}

}  // namespace

OperatorInstance::OperatorInstance(dispatch::OperatorSlot& slot)
    : PackedConstant(slot.engine->dependencies().packs), slot_(slot), schema_(slot.schema) {}

Result<std::shared_ptr<OperatorInstance>> OperatorInstance::make(
    dispatch::OperatorSlot& slot, std::span<const NamedArgument> named) {
  if (Status bad = dispatch::refuse_opaque(*slot.schema); !bad.ok()) return bad;
  auto made = std::make_shared<OperatorInstance>(slot);
  for (const NamedArgument& argument : named) {
    if (Status status = made->take(argument); !status.ok()) return status;
  }
  if (Status status = made->settle(); !status.ok()) return status;
  return made;
}

Status OperatorInstance::take(const NamedArgument& argument) {
  const Result<size_t> at = schema::find_argument(*schema_, argument.name);
  if (!at) return at.error();
  const schema::ArgSpec& spec = schema_->args[*at];
  if ((named_ >> *at & 1) != 0)
    return bad_argument(*schema_, "instance.argument", spec.name, "is named twice");
  if (spec.is_tensor() && spec.written())
    return bad_argument(*schema_, "instance.argument", spec.name,
                        "is written, so each call passes it");
  if (spec.type == schema::ArgType::tensor_list)
    return bad_argument(*schema_, "instance.argument", spec.name, "is a list of tensors");
  named_ |= uint32_t{1} << *at;
  opmux_arg& own = given_[*at];
  own = argument.value;
  own.flags = 0;  // A Constant is a plain tensor here: the instance owns what is packed of it.
  own.reserved = 0;
  if (own.tag != OPMUX_ARG_STR && own.tag != OPMUX_ARG_I64_LIST) return {};
  opmux_list& list = own.value.list;
  if (list.data == nullptr) return {};
  if (own.tag == OPMUX_ARG_STR) {
    list.data = strings_.emplace_back(static_cast<const char*>(list.data), list.size).data();
  } else {
    const auto* first = static_cast<const int64_t*>(list.data);
    list.data = lists_.emplace_back(first, first + list.size).data();
  }
  return {};
}

Status OperatorInstance::settle_one(uint32_t i, ArgTag& tag, ArgValue& value, bool& fixed) const {
  const schema::ArgSpec& spec = schema_->args[i];
  fixed = true;
  if ((named_ >> i & 1) != 0) return normalise_one(*schema_, i, tag, value);
  const bool option = !spec.is_tensor() && spec.type != schema::ArgType::tensor_list;
  if ((option || spec.constant) && spec.omittable()) return fill_in_one(*schema_, i, tag, value);
  fixed = false;
  if (!spec.constant) return {};
  return bad_argument(*schema_, "instance.parameter", spec.name, "is const and must be named");
}

Status OperatorInstance::settle() {
  const auto count = static_cast<uint32_t>(schema_->args.size());
  Status status(read_.read(*schema_, given_.data(), count));
  if (!status.ok()) return status;
  schema::Arguments fixed;
  fixed.count = count;
  for (uint32_t i = 0; i < count; ++i) {
    ArgTag tag = read_.site().tag(i);
    ArgValue value = read_.values()[i];
    bool is_fixed = false;
    status = settle_one(i, tag, value, is_fixed);
    if (!status.ok()) return status;
    all_.site.push(tag);
    all_.values[i] = value;
    if (!is_fixed) passed_.push_back(static_cast<uint8_t>(i));
    fixed.tags[i] = is_fixed ? tag : ArgTag::none;
    fixed.values[i] = value;
    if (is_fixed && tag == ArgTag::tensor && value.tensor->present())
      own_fixed_.parameters |= uint32_t{1} << i;
  }
  status = check_data(*schema_, fixed);
  if (!status.ok()) return status;
  all_.site = all_.site.with_instance();
  all_.values[count].tensor = this;
  dispatch::fill_args(*schema_, fixed, args_.data());
  own_fixed_.call.args = args_.data();
  own_fixed_.call.arg_count = count;
  fix(own_fixed_);
  return {};
}

Status::Detail* OperatorInstance::too_many(uint32_t given) const {
  return Status(Code::invalid_argument, "schema.argument_count",
                base::concat("an instance of ", schema_->name, " takes at most ", passed_.size(),
                             " arguments, ", given, " were given"))
      .release();
}

}  // namespace opmux::runtime
