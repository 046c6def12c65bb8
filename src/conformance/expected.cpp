#include "conformance/expected.hpp"

#include "conformance/draft.hpp"

namespace opmux::conformance {

Case for_reference(const Case& c) {
  Case plain = c;
  const verify::CallView view = c.view();
  for (size_t i = 0; i < c.arguments.size(); ++i) {
    CaseArgument& argument = plain.arguments[i];
    if (!argument.is_tensor() || !argument.present) continue;
    if (verify::widens(view, view.arguments[i])) argument.tensor.dtype = f32;
    set_contiguous(argument.tensor);
    if (argument.read()) argument.tensor.pack();
  }
  return plain;
}

Status call_afresh(const Operator& op, bool needs_instance, std::span<const opmux_arg> arguments,
                   const CallOptions& options, CallReport* report) {
  if (!needs_instance) return op.call_arguments(arguments, options, report);
  std::vector<opmux_arg> passed;
  const Result<Instance> instance = instance_for(op, arguments, passed);
  if (!instance) return instance.error();
  return instance->call_arguments(passed, options, report);
}

Result<Expected> expect(const Operator& op, const Case& c, Arenas& arenas, bool needs_instance) {
  const Case plain = for_reference(c);
  const Placed placed(arenas, plain, std::byte{0xff});
  const Status status = call_afresh(op, needs_instance, placed.arguments());
  if (!status.ok()) return status;
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < plain.arguments.size(); ++i) {
    if (!plain.arguments[i].written()) continue;
    values.push_back(verify::values_of(placed.elements(i), plain.arguments[i].tensor.dtype));
  }
  const bool nothing = c.invalid || c.empty();
  return nothing ? verify::exactly(c.view(), std::move(values))
                 : verify::bounded(c.view(), std::move(values));
}

std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got) {
  const verify::CallView view = c.view();
  const auto mismatch = verify::judge(view, expected, got);
  if (!mismatch) return {};
  return Problem{"value", mismatch->describe(view)};
}

}  // namespace opmux::conformance
