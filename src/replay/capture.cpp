#include "replay/capture.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "replay/placed_call.hpp"
#include "replay/recording.hpp"
#include "schema/facts.hpp"

namespace opmux::replay {
namespace {

/// Converts the arguments of one call. `left_` limits the bytes that are read in total.
class Capture {
 public:
  Capture(const schema::Schema& schema, const schema::Arguments& arguments,
          const CaptureRules& rules)
      : schema_(schema), arguments_(arguments), rules_(rules), left_(rules.most) {}

  RecordedArgument argument(size_t i) {
    RecordedArgument recorded;
    recorded.name = schema_.args[i].name;
    recorded.tag = arguments_.tags[i];
    const ArgValue& value = arguments_.values[i];
    switch (recorded.tag) {
      case ArgTag::tensor:
        if (value.tensor->present()) {
          recorded.tensor = tensor(i, *value.tensor);
        } else {
          recorded.tag = ArgTag::none;
        }
        break;
      case ArgTag::none: break;
      case ArgTag::floating: recorded.f64 = value.f64; break;
      case ArgTag::string:
        recorded.text.assign(static_cast<const char*>(value.list->data), value.list->size);
        break;
      case ArgTag::integer_list: {
        const auto* numbers = static_cast<const int64_t*>(value.list->data);
        recorded.list.assign(numbers, numbers + value.list->size);
        break;
      }
      default: recorded.i64 = value.i64; break;
    }
    return recorded;
  }

 private:
  RecordedTensor tensor(size_t i, const TensorView& view) {
    RecordedTensor recorded;
    recorded.dtype = view.dtype();
    recorded.shape.assign(view.shape().begin(), view.shape().end());
    recorded.strides.assign(view.strides().begin(), view.strides().end());
    recorded.alignment = schema::alignment_of(view);
    recorded.device = view.device();
    recorded.same_as = same_as(i, view);
    recorded.contents = contents(i, view);
    if (recorded.contents == Contents::known) {
      keep_elements(recorded, elements_of(view), rules_.inputs);
    }
    return recorded;
  }

  /// The name of the input that this output shares its memory with; empty if it shares none.
  std::string same_as(size_t i, const TensorView& view) const {
    const int other = schema_.args[i].alias_of;
    if (other < 0 || arguments_.tags[static_cast<size_t>(other)] != ArgTag::tensor) return {};
    const auto& target = schema_.args[static_cast<size_t>(other)];
    const bool same = arguments_.values[static_cast<size_t>(other)].tensor->same_start(view);
    return same ? target.name : std::string();
  }

  Contents contents(size_t i, const TensorView& view) {
    if (!schema_.args[i].read()) return Contents::written;
    if (view.device().type != OPMUX_DEVICE_CPU) return Contents::elsewhere;
    if (rules_.spoilt && may_be_spoilt(i, view)) return Contents::unknown;
    const int64_t elements = view.elements(), size = view.dtype().size_bytes();
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, size, &bytes)) return Contents::large;
    if (static_cast<uint64_t>(bytes) > left_) return Contents::large;
    left_ -= static_cast<size_t>(bytes);
    return Contents::known;
  }

  bool may_be_spoilt(size_t i, const TensorView& view) const {
    if (schema_.args[i].written()) return true;
    for (size_t k = 0; k < schema_.args.size(); ++k) {
      if (!schema_.args[k].is_tensor() || !schema_.args[k].written()) continue;
      if (arguments_.tags[k] != ArgTag::tensor) continue;
      const TensorView& written = *arguments_.values[k].tensor;
      if (written.present() && schema::overlap(written, view)) return true;
    }
    return false;
  }

  const schema::Schema& schema_;
  const schema::Arguments& arguments_;
  const CaptureRules& rules_;
  size_t left_;
};

}  // namespace

void keep_elements(RecordedTensor& tensor, std::vector<std::byte> elements, bool inputs) {
  tensor.contents = Contents::known;
  tensor.sha256 = base::sha256_hex(elements);
  if (inputs) tensor.bytes = std::move(elements);
}

std::optional<std::vector<RecordedArgument>> capture(const schema::Schema& schema,
                                                     const schema::Arguments& arguments,
                                                     const CaptureRules& rules) {
  const auto tags = std::span(arguments.tags).first(arguments.count);
  if (std::ranges::find(tags, ArgTag::tensor_list) != tags.end()) return {};
  Capture capture(schema, arguments, rules);
  std::vector<RecordedArgument> recorded;
  for (size_t i = 0; i < arguments.count; ++i) recorded.push_back(capture.argument(i));
  return recorded;
}

namespace {

uint64_t seed_of(const RecordedArgument& argument) {
  uint64_t seed = 0xcbf29ce484222325u;
  for (const char c : argument.tensor.sha256 + argument.name) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return seed;
}

/// Random number in [-2, 2) from splitmix64, a multiple of 1/32, which every float type can
/// represent.
float next_number(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int64_t>(z >> 57) - 64) / 32;
}

uint16_t half_of(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 1023));
}

void put(std::byte* at, DType dtype, float value) {
  if (dtype == f32) {
    std::memcpy(at, &value, sizeof value);
  } else if (dtype == f64) {
    const double wide = value;
    std::memcpy(at, &wide, sizeof wide);
  } else {
    const auto bits = static_cast<uint16_t>(dtype == bf16 ? std::bit_cast<uint32_t>(value) >> 16
                                                          : uint32_t{half_of(value)});
    std::memcpy(at, &bits, sizeof bits);
  }
}

bool draws(DType dtype) { return dtype == f32 || dtype == f64 || dtype == f16 || dtype == bf16; }

void draw(RecordedArgument& argument) {
  RecordedTensor& tensor = argument.tensor;
  const auto size = static_cast<size_t>(tensor.dtype.size_bytes());
  tensor.bytes.assign(static_cast<size_t>(tensor.elements()) * size, std::byte{0});
  uint64_t state = seed_of(argument);
  for (size_t at = 0; draws(tensor.dtype) && at < tensor.bytes.size(); at += size) {
    put(&tensor.bytes[at], tensor.dtype, next_number(state));
  }
  tensor.contents = Contents::known;
  tensor.sha256 = base::sha256_hex(tensor.bytes);
}

}  // namespace

Result<std::vector<std::string>> draw_missing_elements(Recording& recording) {
  std::vector<std::string> names;
  int64_t left = kMostPlacedBytes;
  for (RecordedArgument& argument : recording.arguments) {
    RecordedTensor& tensor = argument.tensor;
    if (argument.tag != ArgTag::tensor || tensor.contents == Contents::written) continue;
    const int64_t elements = tensor.elements(), size = tensor.dtype.size_bytes();
    if (!tensor.bytes.empty() || elements == 0) continue;
    if (elements > left / size) {
      return Status(
          Code::resource, "replay.size",
          base::concat(argument.name, " has ", elements, " elements, too many to replay the call"));
    }
    left -= elements * size;
    draw(argument);
    names.push_back(argument.name);
  }
  return names;
}

}  // namespace opmux::replay
