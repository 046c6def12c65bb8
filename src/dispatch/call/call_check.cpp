#include "dispatch/call/call_check.hpp"

#include "base/no_callback.hpp"
#include "base/text.hpp"
#include "dispatch/call/thread_block.hpp"
#include "dispatch/engine.hpp"

namespace opmux::dispatch {
namespace {

bool no_output_element(const schema::Schema& schema, const schema::Arguments& arguments) {
  bool written = false;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (!schema.args[i].is_tensor() || !schema.args[i].written()) continue;
    if (arguments.tags[i] != ArgTag::tensor || !arguments.values[i].tensor->present()) continue;
    if (arguments.values[i].tensor->elements() != 0) return false;
    written = true;
  }
  return written;
}

}  // namespace

Status refuse_reentry(const OperatorSlot& slot) {
  if (Status callback = base::refuse_callback(); !callback.ok()) return callback;
  const Preparation* inside = thread_block->preparing;
  while (inside != nullptr && inside->implementation->op != slot.name()) inside = inside->outer;
  if (inside == nullptr) return {};
  return {Code::failed, "call.reentrant",
          base::concat("the ", crash::name_of(inside->phase), " function of ",
                       inside->implementation->id, " called ", slot.name(),
                       ", whose call waits for it")};
}

Status too_deep(const OperatorSlot& slot) {
  return {Code::failed, "call.too_deep",
          "call of " + slot.name() + " is nested 9 levels deep; the limit is 8"};
}

Status refuse_opaque(const schema::Schema& schema) {
  if (!schema.opaque) return {};
  return {Code::unsupported, "call.opaque",
          base::concat(schema.name,
                       " is a function of a language binding, whose arguments only the binding "
                       "knows; call the function")};
}

Status withdrawn(const OperatorSlot& slot) {
  return {Code::no_candidate, "dispatch.no_candidate",
          "operator " + slot.name() + " belongs to a runtime that was destroyed"};
}

Status check(const schema::Schema& schema, const CallSite& site, const ArgValue* values,
             CheckedArguments& checked) {
  if (Status status = normalise(schema, site, values, checked.arguments); !status.ok()) {
    return status;
  }
  if (Status status = check_arguments(schema, checked.arguments, checked.dims); !status.ok()) {
    return status;
  }
  checked.empty = no_output_element(schema, checked.arguments);
  return {};
}

}  // namespace opmux::dispatch
