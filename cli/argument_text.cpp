#include "cli/argument_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <opmux/opmux.h>

namespace opmux::cli {
namespace {

constexpr uintptr_t kFirstAddress = uintptr_t{1} << 40;

Status wrong(const std::string& message) {
  return {Code::invalid_argument, "cli.argument", message};
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);  // NOLINT(*-stringview-data-*)
  if (error != std::errc() || at != end) return {};
  return value;
}

/// "1,2,3"; nullopt if a part is not a number.
std::optional<std::vector<int64_t>> numbers_of(std::string_view text) {
  std::vector<int64_t> numbers;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const auto number = number_of<int64_t>(text.substr(0, comma));
    if (!number) return {};
    numbers.push_back(*number);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (comma != std::string_view::npos && text.empty()) return {};
  }
  return numbers;
}

/// Takes "[...]" or "{...}" from the front of `text`; nullopt if it is not there.
std::optional<std::string_view> take_brackets(std::string_view& text, char open, char close) {
  const size_t end = text.find(close);
  if (!text.starts_with(open) || end == std::string_view::npos) return {};
  const std::string_view inside = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return inside;
}

Status not_a_tensor(std::string_view text) {
  return wrong(
      "'" + std::string(text) +
      "' is not a tensor; write it like bf16[32,4096], f32[32,64]{128,1} or f16[8]@cuda:0");
}

Status not_a(std::string_view what, const ArgumentInfo& info, std::string_view value) {
  return wrong("'" + info.name + "' must be " + std::string(what) + ", not '" + std::string(value) +
               "'");
}

}  // namespace

ArgumentTexts::ArgumentTexts(const Operator& op)
    : op_(op), infos_(op.arguments()), args_(infos_.size(), opmux_arg_none()) {
  while (count_ < infos_.size() && infos_[count_].output) ++count_;
}

Result<const opmux_tensor*> ArgumentTexts::read_tensor(std::string_view text) {
  std::string_view rest = text;
  const size_t bracket = rest.find('[');
  if (bracket == std::string_view::npos) return not_a_tensor(text);
  const DType dtype = parse_dtype(rest.substr(0, bracket));
  if (dtype.bits == 0) {
    return wrong(
        "'" + std::string(rest.substr(0, bracket)) +
        "' is not a dtype; the dtypes are f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool, "
        "f8_e4m3fn, f8_e5m2, f8_e4m3fnuz, f8_e5m2fnuz and f4_e2m1fn_x2");
  }
  rest.remove_prefix(bracket);
  const auto shape_text = take_brackets(rest, '[', ']');
  const auto strides_text = take_brackets(rest, '{', '}');
  Device device;
  if (rest.starts_with('@')) {
    const auto found = parse_device(rest.substr(1));
    if (!found)
      return wrong("'" + std::string(rest.substr(1)) + "' is not a device such as cuda:0");
    device = *found;
  } else if (!rest.empty()) {
    return not_a_tensor(text);
  }
  const auto shape = shape_text ? numbers_of(*shape_text) : std::nullopt;
  const auto strides = numbers_of(strides_text.value_or(""));
  if (!shape || !strides) return not_a_tensor(text);
  if (shape->size() > OPMUX_MAX_RANK) return wrong("a tensor has at most 8 dimensions");
  if (strides_text && strides->size() != shape->size()) {
    return wrong("'" + std::string(text) + "' has " + std::to_string(shape->size()) +
                 " dimensions and " + std::to_string(strides->size()) + " strides");
  }
  Tensor& tensor = tensors_.emplace_back();
  std::copy(shape->begin(), shape->end(), tensor.shape.begin());
  std::copy(strides->begin(), strides->end(), tensor.strides.begin());
  // The address is never dereferenced: explain uses addresses, not data.
  tensor.c = {reinterpret_cast<void*>(kFirstAddress * tensors_.size()),  // NOLINT(*-no-int-to-ptr)
              {device.type, device.id},
              static_cast<int32_t>(shape->size()),
              {dtype.code, dtype.bits, dtype.lanes},
              tensor.shape.data(),
              strides_text ? tensor.strides.data() : nullptr,
              0};
  return &tensor.c;
}

Status ArgumentTexts::read_tensors(std::string_view text, opmux_arg& arg) {
  std::vector<const opmux_tensor*>& list = tensor_lists_.emplace_back();
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const auto tensor = read_tensor(text.substr(0, end));
    if (!tensor) return tensor.error();
    list.push_back(*tensor);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  arg = opmux_arg_tensor_list(list.data(), list.size());
  return {};
}

Status ArgumentTexts::read_integers(std::string_view text, opmux_arg& arg) {
  std::string_view rest = text;
  const auto inside = take_brackets(rest, '[', ']');
  const auto numbers = inside && rest.empty() ? numbers_of(*inside) : std::nullopt;
  if (!numbers) return wrong("'" + std::string(text) + "' is not a list like [1,2,3]");
  const std::vector<int64_t>& list = lists_.emplace_back(*numbers);
  arg = opmux_arg_i64_list(list.data(), list.size());
  return {};
}

Status ArgumentTexts::read_value(const ArgumentInfo& info, const std::string& value,
                                 opmux_arg& arg) {
  if (value == "none" && info.type != ArgTag::enumeration && info.type != ArgTag::string) {
    arg = opmux_arg_none();
    return {};
  }
  switch (info.type) {
    case ArgTag::tensor: {
      const auto tensor = read_tensor(value);
      if (!tensor) return tensor.error();
      arg = opmux_arg_tensor(*tensor);
      return {};
    }
    case ArgTag::integer: {
      const auto number = number_of<int64_t>(value);
      if (!number) return not_a("an integer", info, value);
      arg = opmux_arg_i64(*number);
      return {};
    }
    case ArgTag::floating: {
      const auto number = number_of<double>(value);
      if (!number) return not_a("a number", info, value);
      arg = opmux_arg_f64(*number);
      return {};
    }
    case ArgTag::logical:
      if (value != "true" && value != "false") return not_a("true or false", info, value);
      arg = opmux_arg_bool(value == "true");
      return {};
    case ArgTag::integer_list: return read_integers(value, arg);
    case ArgTag::tensor_list: return read_tensors(value, arg);
    default: {  // Words are checked against the schema later.
      const std::string& kept = texts_.emplace_back(value);
      arg = opmux_arg_str({kept.data(), kept.size()});
      return {};
    }
  }
}

Status ArgumentTexts::read(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return wrong("'" + std::string(text) + "' is not an argument; write it like x=bf16[32,4096]");
  }
  const auto position = op_.position(text.substr(0, equals));
  if (!position) {
    return {Code::invalid_argument, "cli.argument",
            std::string(position.error().message()) + "\n  " + op_.schema()};
  }
  count_ = std::max(count_, *position + 1);
  return read_value(infos_[*position], std::string(text.substr(equals + 1)), args_[*position]);
}

}  // namespace opmux::cli
