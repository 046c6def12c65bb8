#include "registry/point.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <opmux/points.hpp>
#include <opmux/typed.hpp>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "registry/reason.hpp"
#include "registry/registry.hpp"
#include "runtime/core.hpp"
#include "runtime/registration.hpp"

namespace opmux {
namespace {

using registry::PointRecord;
using registry::PointSignature;
using registry::PointType;
using registry::Reason;

std::string_view point_name(std::string_view signature) {
  return signature.substr(0, signature.find('('));
}

/// Why a backend is not asked; nullopt if it is.
std::optional<Reason> refusal(runtime::Core& core, const registry::Backend& backend) {
  if (!backend.enabled()) return Reason::backend_disabled;
  if (backend.lost_by_fork()) return Reason::backend_forked;
  if (core.backend_denied(backend)) return Reason::policy_denied;
  if (!backend.available()) return Reason::backend_unavailable;
  return std::nullopt;
}

std::string meaning_of(Reason reason) {
  const auto all = registry::reason_catalogue();
  return std::string(std::ranges::find(all, reason, &registry::ReasonInfo::reason)->meaning);
}

void warn(runtime::Core& core, const Status& why, std::string_view about) {
  core.log().tell(Level::warning, why.reason(), "", "", about,
                  [&] { return std::string(why.message()); });
}

/// Asks one backend. An answer of another type than the point's counts as none, with an event.
bool gives(runtime::Core& core, const registry::PointAnswer& candidate,
           const PointSignature& signature, const opmux_arg* args, uint32_t count,
           opmux_arg& answer) {
  opmux_arg given{};
  if (!(*candidate.function)(args, count, given)) return false;
  if (given.tag != registry::tag_of(signature.answer)) {
    const std::string& backend = candidate.backend->name();
    warn(core,
         {Code::invalid_argument, "point.answer",
          base::concat("backend ", backend, " answers ", signature.canonical(),
                       " with a value of another type (tag ", given.tag, "), which is ignored")},
         backend);
    return false;
  }
  answer = given;
  return true;
}

/// Declares a point and logs the answers of plugins that have another signature.
Status declare(runtime::Core& core, std::string_view signature) {
  std::vector<registry::Refusal> dropped;
  Status status = core.registry().declare_point(signature, &dropped);
  for (const registry::Refusal& each : dropped) warn(core, status_of(each), each.what);
  return status;
}

std::shared_ptr<const PointRecord> declared(runtime::Core& core, std::string_view name) {
  const registry::RegistrySnapshotPtr snapshot = core.registry().snapshot();
  const auto found = snapshot->points.find(name);
  return found == snapshot->points.end() ? nullptr : found->second;
}

PointCandidate candidate_of(runtime::Core& core, const registry::PointAnswer& answer) {
  const registry::Backend& backend = *answer.backend;
  PointCandidate candidate{backend.name(), backend.plugin(), backend.priority(), "next", "", ""};
  if (const std::optional<Reason> why = refusal(core, backend)) {
    candidate.verdict = "refused";
    candidate.code = registry::code_of(*why);
    candidate.reason =
        *why == Reason::backend_unavailable ? backend.unavailable_reason() : meaning_of(*why);
  }
  return candidate;
}

PointInfo info_of(runtime::Core& core, const PointRecord& record, bool is_declared) {
  PointInfo info{record.signature.name, record.signature.canonical(), is_declared, {}, ""};
  for (const registry::PointAnswer& answer : record.answers) {
    info.candidates.push_back(candidate_of(core, answer));
  }
  return info;
}

/// The answers to points that nothing has declared, as records.
std::map<std::string, PointRecord> unclaimed_points(const registry::RegistrySnapshot& snapshot) {
  std::map<std::string, PointRecord> points;
  for (const registry::UnclaimedAnswer& waiting : snapshot.unclaimed) {
    PointRecord& record =
        points.try_emplace(waiting.signature.name, PointRecord{waiting.signature, {}})
            .first->second;
    record.insert(waiting.answer);
  }
  return points;
}

std::string answer_text(PointType type, const opmux_arg& answer) {
  switch (type) {
    case PointType::integer: return std::to_string(answer.value.i64);
    case PointType::floating: return base::number_text(answer.value.f64);
    case PointType::boolean: return answer.value.i64 != 0 ? "true" : "false";
    case PointType::device: return name_of(detail::point_value<Device>(answer));
    case PointType::string: break;
  }
  return detail::point_value<std::string>(answer);
}

Status check_arguments(const PointSignature& signature, const opmux_arg* args, uint32_t count) {
  bool fits = count == signature.parameters.size();
  for (uint32_t i = 0; fits && i < count; ++i) {
    fits = args[i].tag == registry::tag_of(signature.parameters[i]);
  }
  if (fits) return {};
  return {Code::invalid_argument, "point.arguments",
          base::concat("these are not the arguments of ", signature.canonical())};
}

void ask_in_order(runtime::Core& core, const PointRecord& record, const opmux_arg* args,
                  uint32_t count, PointInfo& info) {
  for (size_t i = 0; i < info.candidates.size(); ++i) {
    PointCandidate& candidate = info.candidates[i];
    if (candidate.verdict == "refused") continue;
    opmux_arg answer{};
    const bool answered = gives(core, record.answers[i], record.signature, args, count, answer);
    candidate.verdict = answered ? "chosen" : "no answer";
    if (!answered) continue;
    info.answer = answer_text(record.signature.answer, answer);
    return;
  }
}

Status unknown_point(runtime::Core& core, std::string_view name) {
  const registry::RegistrySnapshotPtr snapshot = core.registry().snapshot();
  std::vector<std::string> known;
  for (const auto& [one, record] : snapshot->points) known.push_back(one);
  for (const auto& [one, record] : unclaimed_points(*snapshot)) known.push_back(one);
  return {Code::not_found, "point.unknown",
          base::concat("nothing declares or answers a specialization point '", name, "'",
                       base::suggestion(name, known))};
}

void write(base::JsonWriter& json, const PointInfo& point) {
  json.open('{').key("name").text(point.name).key("signature").text(point.signature);
  json.key("declared").boolean(point.declared).key("answer").text(point.answer);
  json.key("candidates").open('[');
  for (const PointCandidate& one : point.candidates) {
    json.open('{').key("backend").text(one.backend).key("plugin").text(one.plugin);
    json.key("priority").number(int64_t{one.priority}).key("verdict").text(one.verdict);
    json.key("code").text(one.code).key("reason").text(one.reason).close('}');
  }
  json.close(']').close('}');
}

}  // namespace

std::string PointInfo::to_string() const {
  std::string text = base::concat(signature, declared ? "" : "   not declared");
  if (!answer.empty()) text += base::concat("   ", answer);
  for (const PointCandidate& one : candidates) {
    text += base::concat("\n  ", one.backend, "   ", one.verdict, "   priority ", one.priority);
    if (!one.code.empty()) text += base::concat("   ", one.code, ": ", one.reason);
  }
  return text + "\n";
}

std::vector<PointInfo> list_points(const Runtime& runtime) {
  runtime::Core& core = runtime.core();
  core.plugins().warm_up();
  const registry::RegistrySnapshotPtr snapshot = core.registry().snapshot();
  std::map<std::string, PointInfo> points;
  for (const auto& [name, record] : snapshot->points) points[name] = info_of(core, *record, true);
  for (const auto& [name, record] : unclaimed_points(*snapshot)) {
    points.try_emplace(name, info_of(core, record, false));
  }
  std::vector<PointInfo> all;
  for (auto& [name, point] : points) all.push_back(std::move(point));
  return all;
}

Result<PointInfo> explain_point(Runtime& runtime, std::string_view point, const opmux_arg* args,
                                uint32_t count) {
  runtime::Core& core = runtime.core();
  core.plugins().warm_up();
  const std::string_view name = point_name(point);
  if (name.size() != point.size()) {
    if (Status status = core.registry().declare_point(point); !status.ok()) return status;
  }
  std::shared_ptr<const PointRecord> record = declared(core, name);
  const bool is_declared = record != nullptr;
  if (!is_declared) {
    const auto waiting = unclaimed_points(*core.registry().snapshot());
    const auto found = waiting.find(std::string(name));
    if (found == waiting.end()) return unknown_point(core, name);
    record = std::make_shared<PointRecord>(found->second);
  }
  PointInfo info = info_of(core, *record, is_declared);
  if (count == 0 && !record->signature.parameters.empty()) return info;
  if (Status bad = check_arguments(record->signature, args, count); !bad.ok()) return bad;
  ask_in_order(core, *record, args, count, info);
  return info;
}

std::string to_json(const PointInfo& point) {
  base::JsonWriter json;
  write(json, point);
  return json.take();
}

std::string to_json(const std::vector<PointInfo>& points) {
  base::JsonWriter json;
  json.open('{').key("points").open('[');
  for (const PointInfo& point : points) write(json, point);
  json.close(']').close('}');
  return json.take();
}

namespace detail {

Status declare_point(Runtime& runtime, const std::string& signature) {
  return declare(runtime.core(), signature);
}

Status find_answer(Runtime& runtime, std::string_view signature, const opmux_arg* args,
                   uint32_t count, opmux_arg& answer) {
  runtime::Core& core = runtime.core();
  std::shared_ptr<const PointRecord> record = declared(core, point_name(signature));
  // Declaring it again compares the types, so that an int is not read as a float.
  if (record == nullptr || record->signature.canonical() != signature) {
    if (Status status = declare(core, signature); !status.ok()) {
      warn(core, status, point_name(signature));
      return status;
    }
    record = declared(core, point_name(signature));
  }
  if (record == nullptr) return unknown_point(core, point_name(signature));
  if (Status bad = check_arguments(record->signature, args, count); !bad.ok()) return bad;
  for (const registry::PointAnswer& candidate : record->answers) {
    if (refusal(core, *candidate.backend)) continue;
    if (gives(core, candidate, record->signature, args, count, answer)) return {};
  }
  return {Code::declined, "point.no_answer",
          base::concat("no backend answers ", record->signature.canonical())};
}

bool ask_point(Runtime& runtime, const std::string& signature, const opmux_arg* args,
               uint32_t count, opmux_arg& answer) {
  return find_answer(runtime, signature, args, count, answer).ok();
}

Result<Registration> answer_point(
    Runtime& runtime, const std::string& signature, std::string_view backend,
    detail::Function<bool(const opmux_arg* args, uint32_t count, opmux_arg& answer)> function) {
  registry::Registry& registry = runtime.core().registry();
  if (Status status = registry.answer_point(signature, backend, std::move(function));
      !status.ok()) {
    return status;
  }
  return Registration(std::make_unique<Registration::Held>(
      runtime.core(), [&registry, signature, name = std::string(backend)] {
        registry.withdraw_answer(signature, name);
      }));
}

}  // namespace detail
}  // namespace opmux
