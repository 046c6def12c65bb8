#include "plugin/read/backend_reader.hpp"

#include "base/status.hpp"
#include "base/system/process.hpp"
#include "plugin/read/bounded_read.hpp"
#include "plugin/read/implementation_reader.hpp"

namespace opmux::plugin {
namespace {

using registry::BackendDraft;
using registry::Batch;
using registry::DeviceAccess;
using registry::Refusal;

constexpr size_t kImplementationSize = OPMUX_SIZE_TO(opmux_impl, describe);

/// Calls is_available; returns why the backend is not available, or nullopt if it is.
std::optional<std::string> ask(int32_t (*is_available)(void*, opmux_error*), void* user_data) {
  const base::ThreadStateGuard guard;
  base::ErrorSink why;
  const int32_t outcome = is_available(user_data, why.c());
  if (outcome == OPMUX_OK) return std::nullopt;
  std::string text = why.text();
  if (outcome != OPMUX_DECLINED) {
    return base::concat("its is_available function returned outcome ", outcome,
                        text.empty() ? "" : ": ", text);
  }
  return text.empty() ? "it gives no reason" : text;
}

/// Calls the architecture function; returns an empty text if the device has none.
std::string ask_architecture(int32_t (*function)(void*, int32_t, opmux_str*), void* user_data,
                             int32_t device) {
  const base::ThreadStateGuard guard;
  opmux_str text{};
  if (function(user_data, device, &text) != OPMUX_OK) return {};
  const Result<std::string> read = read_text(text, "architecture of a device");
  return read ? *read : "(a text that cannot be read)";
}

Result<std::optional<DeviceAccess>> read_device(const opmux_backend& from) {
  if (from.device == nullptr) return std::optional<DeviceAccess>();
  DeviceAccess access{from.user_data, {}};
  opmux_device_table& table = access.functions;
  if (Status bad = read_struct(from.device, OPMUX_SIZE_TO(opmux_device_table, event_destroy),
                               kLargestStride, "device table", table);
      !bad.ok()) {
    return bad;
  }
  if (Status bad = check_reserved(table.reserved, "a device table"); !bad.ok()) return bad;
  const bool complete = table.count && table.alloc && table.free && table.copy &&
                        table.synchronize && table.stream_create && table.stream_destroy;
  if (!complete) return malformed("null_function", "its device table lacks required functions");
  const int events = (table.event_record ? 1 : 0) + (table.event_elapsed_ns ? 1 : 0) +
                     (table.event_destroy ? 1 : 0);
  if (events % 3 != 0)
    return malformed("null_function",
                     "its device table has some of the event functions, but not all");
  return std::optional(access);
}

Status read_head(const opmux_backend& from, const Origin& origin, BackendDraft& into) {
  Result<std::string> name = read_text(from.name, "name of a backend");
  if (!name) return name.error();
  into.name = *std::move(name);
  Result<std::string> vendor = read_text(from.vendor, "vendor of a backend");
  if (!vendor) return vendor.error();
  into.vendor = *std::move(vendor);
  if (from.kind < OPMUX_KIND_DEFAULT || from.kind > OPMUX_KIND_REFERENCE) {
    return malformed("kind", base::concat("kind ", from.kind, " is not defined"));
  }
  if (from.device_type < 0 || from.device_type > OPMUX_DEVICE_LAST) {
    return malformed("device",
                     base::concat("device type ", from.device_type, " is not in 0 to 65535"));
  }
  Result<std::string> device_name = read_text(from.device_name, "device_name of a backend");
  if (!device_name) return device_name.error();
  into.device_name = *std::move(device_name);
  Result<std::optional<DeviceAccess>> device = read_device(from);
  if (!device) return device.error();
  into.device = *std::move(device);
  into.kind = static_cast<opmux::Kind>(from.kind);
  into.device_type = from.device_type == 0 ? OPMUX_DEVICE_CPU : from.device_type;
  into.flags = from.flags;
  into.priority = from.priority;
  into.plugin = origin.plugin;
  into.build_id = origin.build_id;
  into.owner = origin.owner;
  if (from.is_available != nullptr) {
    into.probe = [is_available = from.is_available, user_data = from.user_data] {
      return ask(is_available, user_data);
    };
  }
  if (from.architecture != nullptr) {
    into.architecture = [function = from.architecture, user_data = from.user_data](int32_t id) {
      return ask_architecture(function, user_data, id);
    };
  }
  return check_reserved(from.reserved, "a backend");
}

/// The tag that an answer of this type must have.
uint32_t expected_tag(registry::PointType type) {
  switch (type) {
    case registry::PointType::floating: return OPMUX_ARG_F64;
    case registry::PointType::boolean: return OPMUX_ARG_BOOL;
    case registry::PointType::string: return OPMUX_ARG_STR;
    default: return OPMUX_ARG_I64;
  }
}

/// Whether an answer has the right tag and, if it is a string, a plausible size and pointer.
bool acceptable(const opmux_arg& answer, uint32_t tag) {
  if (answer.tag != tag) return false;
  if (tag != OPMUX_ARG_STR) return true;
  const opmux_list& list = answer.value.list;
  return list.size <= kLongestText && (list.size == 0 || list.data != nullptr);
}

}  // namespace

std::optional<Batch> read_backend(const opmux_backend& from, const Origin& origin,
                                  std::vector<Refusal>& refused) {
  Batch batch;
  const size_t before = refused.size();
  Status bad = read_head(from, origin, batch.backend);
  const std::string& name = batch.backend.name;
  if (bad.ok()) {
    bad = check_array(from.impls, from.impl_count, from.impl_stride, kImplementationSize,
                      "implementations");
  }
  if (!bad.ok()) {
    refused.push_back({name, std::move(bad)});
    return std::nullopt;
  }
  for (uint32_t i = 0; i < from.impl_count; ++i) {
    opmux_impl impl{};
    Status why =
        read_element(from.impls, i, from.impl_stride, kImplementationSize, "implementation", impl);
    Result<registry::ImplementationDraft> draft =
        why.ok() ? read_implementation(impl, origin.build_id, origin.owner)
                 : Result<registry::ImplementationDraft>(std::move(why));
    if (draft) {
      batch.implementations.push_back(*std::move(draft));
    } else {
      refused.push_back({base::concat("implementation ", i + 1, " of ", name), draft.error()});
    }
  }
  if (refused.size() != before) return std::nullopt;
  return batch;
}

Result<registry::PointAnswerDraft> read_point(const opmux_point& from, const Origin& origin,
                                              std::string& backend) {
  if (Status bad = check_reserved(from.reserved, "an answer"); !bad.ok()) return bad;
  Result<std::string> name = read_text(from.backend, "backend of an answer");
  if (!name) return name.error();
  backend = *std::move(name);
  Result<std::string> text = read_text(from.signature, "signature of an answer");
  if (!text) return text.error();
  const auto signature = registry::parse_point_signature(*text);
  if (!signature) return signature.error();
  if (from.answer == nullptr) return malformed("null_function", "it has no answer function");
  const uint32_t tag = expected_tag(signature->answer);
  return registry::PointAnswerDraft{
      *text, [answer = from.answer, user_data = from.user_data, owner = origin.owner, tag](
                 const opmux_arg* args, uint32_t count, opmux_arg& into) {
        return answer(user_data, args, count, &into) == OPMUX_OK && acceptable(into, tag);
      }};
}

}  // namespace opmux::plugin
