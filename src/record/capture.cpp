#include "record/capture.hpp"

#include <algorithm>
#include <span>

#include "base/digest.hpp"
#include "record/elements.hpp"
#include "registry/facts.hpp"

namespace opmux::record {
namespace {

/// Converts the arguments of one call. `left_` limits the bytes that are read in total.
class Capture {
 public:
  Capture(const registry::Schema& schema, const registry::Arguments& arguments,
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
    recorded.alignment = registry::alignment_of(view);
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
      if (written.present() && registry::overlap(written, view)) return true;
    }
    return false;
  }

  const registry::Schema& schema_;
  const registry::Arguments& arguments_;
  const CaptureRules& rules_;
  size_t left_;
};

}  // namespace

void keep_elements(RecordedTensor& tensor, std::vector<std::byte> elements, bool inputs) {
  tensor.contents = Contents::known;
  tensor.sha256 = base::sha256_hex(elements);
  if (inputs) tensor.bytes = std::move(elements);
}

std::optional<std::vector<RecordedArgument>> capture(const registry::Schema& schema,
                                                     const registry::Arguments& arguments,
                                                     const CaptureRules& rules) {
  const auto tags = std::span(arguments.tags).first(arguments.count);
  if (std::ranges::find(tags, ArgTag::tensor_list) != tags.end()) return {};
  Capture capture(schema, arguments, rules);
  std::vector<RecordedArgument> recorded;
  for (size_t i = 0; i < arguments.count; ++i) recorded.push_back(capture.argument(i));
  return recorded;
}

}  // namespace opmux::record
