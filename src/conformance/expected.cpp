#include "conformance/expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "conformance/element.hpp"
#include "conformance/shaper.hpp"

namespace opmux::conformance {
namespace {

std::vector<double> values_of(const std::vector<std::byte>& bytes, DType dtype) {
  const auto size = static_cast<size_t>(dtype.size_bytes());
  std::vector<double> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = read_element(bytes.data() + i * size, dtype);
  return values;
}

/// Its result is rounded to f32 only, so that what an implementation rounds can be judged.
bool widens(const Shaper& shaper, const Case& c, const CaseArgument& argument) {
  return argument.written() && is_float(argument.tensor.dtype) &&
         argument.info->dtype_variable.empty() &&
         (shaper.sees_rounding == nullptr || !shaper.sees_rounding(c, argument.info->name));
}

Case for_reference(const Shaper& shaper, const Case& c) {
  Case plain = c;
  for (CaseArgument& argument : plain.arguments) {
    if (!argument.is_tensor() || !argument.present) continue;
    if (widens(shaper, c, argument)) argument.tensor.dtype = f32;
    set_contiguous(argument.tensor);
    if (argument.read()) argument.tensor.pack();
  }
  return plain;
}

/// Both computations may be off by the bound; tiny results may be flushed to zero.
void finish_bounds(const Case& c, const Shaper& shaper, ExpectedOutput& output) {
  const CaseArgument& argument = c.arguments[output.argument];
  if (!is_float(argument.tensor.dtype)) return;
  const bool widened = widens(shaper, c, argument);
  for (size_t i = 0; i < output.bounds.size(); ++i) {
    double& bound = output.bounds[i];
    if (bound == 0) continue;
    bound = 2 * bound + kSmallest;
    if (!widened) bound += half_step(output.values[i], argument.tensor.dtype);
  }
}

std::string index_text(const CaseTensor& tensor, size_t element) {
  std::string text;
  auto left = static_cast<int64_t>(element);
  for (size_t i = tensor.shape.size(); i > 0; --i) {
    if (!text.empty()) text.insert(0, ",");
    text.insert(0, std::to_string(left % tensor.shape[i - 1]));
    left /= tensor.shape[i - 1];
  }
  return "[" + text + "]";
}

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

bool fits(double got, double value, double bound, DType dtype) {
  if (std::isnan(value)) return std::isnan(got);
  if (!std::isfinite(bound)) return true;  // nothing is known about this one
  if (got == rounded(value, dtype)) return true;
  if (std::isinf(value)) return false;
  return got >= rounded(value - bound, dtype) && got <= rounded(value + bound, dtype);
}

std::string judgement(const CaseArgument& argument, size_t element, double got, double value,
                      double bound) {
  const DType dtype = argument.tensor.dtype;
  std::string text = argument.info->name + index_text(argument.tensor, element) + " is " +
                     number_text(got) + ", expected " + number_text(rounded(value, dtype));
  if (bound > 0 && std::isfinite(value)) {
    text += " (the reference has " + number_text(value) + " +- " + number_text(bound) + ", in " +
            name_of(dtype) + " from " + number_text(rounded(value - bound, dtype)) + " to " +
            number_text(rounded(value + bound, dtype)) + ")";
  }
  return text;
}

}  // namespace

void ExpectedOutput::bound_relative(double relative) {
  for (size_t i = 0; i < values.size(); ++i) bounds[i] = std::abs(values[i]) * relative;
}

ExpectedOutput& Expected::of(const Case& c, std::string_view name) {
  const auto position = static_cast<size_t>(&c.argument(name) - c.arguments.data());
  return *std::ranges::find(outputs, position, &ExpectedOutput::argument);
}

Result<Expected> expect(const Operator& op, const Shaper& shaper, const Case& c, Arenas& arenas) {
  const Case plain = for_reference(shaper, c);
  const Placed placed(arenas, plain, std::byte{0xff});
  const Status status = op.call_arguments(placed.arguments());
  if (!status.ok()) return status;
  Expected expected;
  for (size_t i = 0; i < plain.arguments.size(); ++i) {
    if (!plain.arguments[i].written()) continue;
    ExpectedOutput output{i, values_of(placed.elements(i), plain.arguments[i].tensor.dtype), {}};
    output.bounds.assign(output.values.size(), 0);
    expected.outputs.push_back(std::move(output));
  }
  if (shaper.bound != nullptr && !c.invalid && !c.empty()) shaper.bound(c, expected);
  for (ExpectedOutput& output : expected.outputs) finish_bounds(c, shaper, output);
  return expected;
}

std::optional<Problem> judge(const Case& c, const Expected& expected,
                             const std::vector<std::vector<std::byte>>& got) {
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    const ExpectedOutput& output = expected.outputs[o];
    const CaseArgument& argument = c.arguments[output.argument];
    const std::vector<double> values = values_of(got[o], argument.tensor.dtype);
    for (size_t i = 0; i < values.size(); ++i) {
      if (fits(values[i], output.values[i], output.bounds[i], argument.tensor.dtype)) continue;
      return Problem{"value",
                     judgement(argument, i, values[i], output.values[i], output.bounds[i])};
    }
  }
  return {};
}

}  // namespace opmux::conformance
