#include "runtime/recorder.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include <opmux/version.h>

#include "base/cpu_features.hpp"
#include "base/digest.hpp"
#include "base/text.hpp"
#include "health/breaker_key.hpp"
#include "runtime/recorded_divergence.hpp"

namespace opmux::runtime {
namespace {

constexpr size_t kMostKeys = 4096;
constexpr size_t kNameDigits = 32;
constexpr size_t kMostSaid = 2048;

std::string machine_features() {
  std::string all;
  for (const std::string& feature : base::cpu_features()) {
    if (!all.empty()) all += ",";
    all += feature;
  }
  return all;
}

/// Calls with the same key are recorded once.
std::string key_of(const registry::ImplementationRecord& implementation, std::string_view reason,
                   std::string_view call_class) {
  return base::concat(implementation.id, " ", implementation.build_id, " ", reason, " ",
                      call_class);
}

}  // namespace

Result<RecordOptions> record_options(RecordOptions options, const std::string& environment_folder,
                                     bool environment_inputs) {
  if (options.folder.empty()) {
    options.folder = environment_folder;
    options.inputs = environment_inputs;
  }
  if (options.folder.empty()) return options;
  if (base::sha256_hex({}).empty()) {
    return Status(Code::unsupported, "record.unsupported",
                  "calls cannot be recorded: the library was built without SHA-256");
  }
  std::error_code error;
  const auto absolute = std::filesystem::absolute(options.folder, error).lexically_normal();
  if (!error) options.folder = absolute.native();
  if (options.folder.size() > 1 && options.folder.ends_with('/')) options.folder.pop_back();
  return options;
}

CallRecorder::CallRecorder(Parts parts, const RecordOptions& options)
    : parts_(std::move(parts)), options_(options), folder_(options.folder, options.max_files) {}

CallRecorder::Turn CallRecorder::take_turn(const std::string& key) {
  return seen_.with([&](std::set<std::string>& seen) {
    if (seen.contains(key)) return Turn::again;
    if (seen.size() == kMostKeys) return Turn::crowded;
    seen.insert(key);
    return Turn::first;
  });
}

bool CallRecorder::is_first(const std::string& key) {
  const Turn turn = take_turn(key);
  if (turn == Turn::first) return true;
  (turn == Turn::again ? known_ : left_out_).fetch_add(1, std::memory_order_relaxed);
  return false;
}

record::CaptureRules CallRecorder::rules(bool spoilt) const {
  return {.inputs = options_.inputs,
          .spoilt = spoilt,
          .most = std::min<uint64_t>(options_.max_bytes, record::kMostElementBytes)};
}

record::Recording CallRecorder::describe(const registry::ImplementationRecord& implementation,
                                         const registry::Schema& schema,
                                         std::string call_class) const {
  record::Recording recording;
  recording.version = OPMUX_VERSION;
  recording.op = implementation.op;
  recording.schema = schema.canonical();
  recording.implementation = implementation.id;
  recording.build_id = implementation.build_id;
  recording.call_class = std::move(call_class);
  recording.policy_hash = parts_.policy_hash();
  recording.cpu = machine_features();
  return recording;
}

void CallRecorder::note(const dispatch::FailedCall& call) {
  if (!on()) return;
  const registry::ImplementationRecord& implementation = call.implementation;
  const registry::Schema& schema = *call.signature.schema;
  std::string call_class = health::describe(health::BreakerKey::of(call.signature), schema);
  const std::string key = key_of(implementation, "call.failed", call_class);
  if (!is_first(key)) return;
  auto arguments = record::capture(schema, *call.signature.arguments,
                                   rules(!implementation.has(OPMUX_IMPL_ATOMIC_OUTPUTS)));
  if (!arguments) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  record::Recording recording = describe(implementation, schema, std::move(call_class));
  recording.cause = record::Cause::failed;
  recording.reason = "call.failed";
  recording.says = call.says.substr(0, kMostSaid);
  recording.ambient = call.signature.ambient;
  recording.max_threads = call.max_threads;
  recording.arguments = std::move(*arguments);
  write(key, recording);
}

void CallRecorder::saw(const verify::Divergence& divergence) {
  if (!on()) return;
  const std::string key = key_of(divergence.implementation, "shadow.mismatch", divergence.what);
  if (!is_first(key)) return;
  record::Recording recording =
      describe(divergence.implementation, divergence.schema, std::string(divergence.what));
  describe_divergence(divergence, rules(false), recording);
  write(key, recording);
}

void CallRecorder::write(const std::string& key, const record::Recording& recording) {
  const std::string named = base::concat(options_.inputs ? "inputs " : "", key);
  const std::string name = base::sha256_hex(std::as_bytes(std::span(named))).substr(0, kNameDigits);
  const Status status = folder_.write(name, record::to_file(recording));
  if (status.code() == Code::already_exists) {
    known_.fetch_add(1, std::memory_order_relaxed);
  } else if (!status.ok()) {
    tell_failure(status);
  } else {
    written_.fetch_add(1, std::memory_order_relaxed);
    parts_.log->tell(Level::warning, "record.written", recording.op, recording.implementation, name,
                     [&] {
                       return base::concat("a call that ", record::name_of(recording.cause),
                                           " was recorded; replay it with 'opmux replay ",
                                           folder_.path_of(name), "'");
                     });
  }
}

void CallRecorder::tell_failure(const Status& why) {
  const bool full = why.reason() == "record.full";
  (full ? left_out_ : failed_).fetch_add(1, std::memory_order_relaxed);
  problem_.update([&](std::string& problem) {
    problem = why.message();
    return true;
  });
  parts_.log->tell(Level::warning, why.reason(), "", "", "", [&] {
    return base::concat("failed calls cannot be recorded: ", why.message());
  });
}

RecordState CallRecorder::state() const {
  RecordState state;
  state.folder = options_.folder;
  state.inputs = on() && options_.inputs;
  state.written = written_.load(std::memory_order_relaxed);
  state.known = known_.load(std::memory_order_relaxed);
  state.left_out = left_out_.load(std::memory_order_relaxed);
  state.failed = failed_.load(std::memory_order_relaxed);
  state.problem = *problem_.get();
  return state;
}

}  // namespace opmux::runtime
