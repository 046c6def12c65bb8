#include "replay/recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include <opmux/version.h>

#include "base/crypto.hpp"
#include "base/system/cpu_features.hpp"
#include "base/text.hpp"
#include "dispatch/decide/lock_fit.hpp"
#include "health/breaker_key.hpp"
#include "replay/dump_filter.hpp"
#include "verify/bounds.hpp"

namespace opmux::replay {
namespace {

constexpr uint32_t kPage = 4096;

int64_t alignment_of_copied(uint32_t misalignment) {
  return misalignment % kPage == 0 ? kPage : misalignment & (~misalignment + 1);
}

/// Stores the elements that the tensor had before the call, or, of a tensor that is only written
/// and if `results` is true, those after it.
RecordedTensor recorded_tensor(const verify::CopiedArgument& from, size_t& left, bool inputs,
                               bool results) {
  RecordedTensor tensor;
  tensor.dtype = from.dtype;
  tensor.device = from.device;
  tensor.shape.assign(from.shape.begin(), from.shape.begin() + from.rank);
  tensor.strides.assign(from.strides.begin(), from.strides.begin() + from.rank);
  tensor.alignment = alignment_of_copied(from.misalignment);
  if (!from.read && !results) return tensor;
  const std::span<std::byte> elements = from.read ? from.before : from.after;
  if (elements.size() > left) {
    tensor.contents = from.read ? Contents::large : Contents::written;
    return tensor;
  }
  left -= elements.size();
  keep_elements(tensor, {elements.begin(), elements.end()}, inputs);
  if (!from.read) tensor.contents = Contents::result;
  return tensor;
}

void record_arguments(const verify::CallCopy& call, const schema::Schema& schema,
                      const CaptureRules& rules, bool results, Recording& recording) {
  const std::vector<verify::CopiedArgument>& copied = call.arguments();
  size_t left = rules.most;
  for (size_t i = 0; i < copied.size(); ++i) {
    RecordedArgument& argument = recording.arguments.emplace_back();
    argument.name = schema.args[i].name;
    argument.tag = static_cast<ArgTag>(copied[i].tag);
    argument.i64 = copied[i].i64;
    argument.f64 = copied[i].f64;
    if (!copied[i].is_tensor()) continue;
    argument.tensor = recorded_tensor(copied[i], left, rules.inputs, results);
  }
}

}  // namespace

void describe_divergence(const verify::Divergence& divergence, const CaptureRules& rules,
                         Recording& recording) {
  const std::vector<verify::CopiedArgument>& copied = divergence.call.arguments();
  const verify::Mismatch& mismatch = divergence.mismatch;
  recording.cause = Cause::diverged;
  recording.reason = "shadow.mismatch";
  recording.says = divergence.text;
  recording.element =
      RecordedElement{divergence.schema.args[mismatch.argument].name,
                      verify::index_of(copied[mismatch.argument].dims(), mismatch.element),
                      mismatch.got, mismatch.expected, mismatch.tolerance};
  record_arguments(divergence.call, divergence.schema, rules, false, recording);
}

namespace {

constexpr size_t kMostKeys = 4096;
constexpr size_t kNameDigits = 32;
constexpr size_t kMostSaid = 2048;
constexpr size_t kMostName = 200;

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
                                     bool environment_inputs, const std::string& environment_dump) {
  if (options.folder.empty()) {
    options.folder = environment_folder;
    options.inputs = environment_inputs;
  }
  if (options.dump.empty()) options.dump = environment_dump;
  if (!options.dump.empty()) {
    const Result<DumpFilter> filter = DumpFilter::parse(options.dump);
    if (!filter) return filter.error();
    if (options.folder.empty()) {
      return Status(Code::invalid_argument, "record.dump",
                    base::concat("the calls of the dump '", options.dump,
                                 "' need a folder: set OPMUX_RECORD or RecordOptions::folder"));
    }
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

CallRecorder::CallRecorder(base::EventLog& log, const registry::SnapshotSource& registry,
                           const policy::PolicySource& policies, const RecordOptions& options)
    : log_(log),
      registry_(registry),
      policies_(policies),
      options_(options),
      folder_(options.folder, options.max_files) {}

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

CaptureRules CallRecorder::rules(bool spoilt) const {
  return {.inputs = options_.inputs,
          .spoilt = spoilt,
          .most = std::min<uint64_t>(options_.max_bytes, kMostElementBytes)};
}

Recording CallRecorder::describe(const registry::ImplementationRecord& implementation,
                                 const schema::Schema& schema, std::string call_class) const {
  Recording recording;
  recording.version = OPMUX_VERSION;
  recording.op = implementation.op;
  recording.schema = schema.canonical();
  recording.implementation = implementation.id;
  recording.build_id = implementation.build_id;
  recording.call_class = std::move(call_class);
  recording.policy_hash = dispatch::policy_hash({registry_.snapshot(), policies_.set()});
  recording.cpu = machine_features();
  return recording;
}

void CallRecorder::note(const dispatch::FailedCall& call) {
  if (!on()) return;
  const registry::ImplementationRecord& implementation = call.implementation;
  const schema::Schema& schema = *call.signature.schema;
  std::string call_class = health::describe(health::BreakerKey::of(call.signature), schema);
  const std::string key = key_of(implementation, "call.failed", call_class);
  if (!is_first(key)) return;
  auto arguments = capture(schema, *call.signature.arguments,
                           rules(!implementation.has(OPMUX_IMPL_ATOMIC_OUTPUTS)));
  if (!arguments) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Recording recording = describe(implementation, schema, std::move(call_class));
  recording.cause = Cause::failed;
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
  Recording recording =
      describe(divergence.implementation, divergence.schema, std::string(divergence.what));
  describe_divergence(divergence, rules(false), recording);
  write(key, recording);
}

namespace {

/// A name for a file that says what it holds: "rms_norm.layer_3.5.p1234".
std::string dump_name(const DumpedCall& call) {
  std::string name = base::concat(call.implementation.op, ".", call.layer, ".", call.step, ".p",
                                  static_cast<int64_t>(::getpid()));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '.') c = '_';
  }
  return name.substr(name.size() > kMostName ? name.size() - kMostName : 0);
}

}  // namespace

void CallRecorder::keep(const DumpedCall& call) {
  Recording recording = describe(call.implementation, call.schema,
                                 base::concat(call.layer.empty() ? "" : "layer ", call.layer,
                                              call.layer.empty() ? "" : " ", "step ", call.step));
  recording.cause = Cause::dumped;
  recording.reason = "record.dump";
  recording.ambient = call.ambient;
  recording.max_threads = call.max_threads;
  record_arguments(call.call, call.schema, rules(false), true, recording);
  write_file(dump_name(call), recording);
}

void CallRecorder::write(const std::string& key, const Recording& recording) {
  const std::string named = base::concat(options_.inputs ? "inputs " : "", key);
  write_file(base::sha256_hex(std::as_bytes(std::span(named))).substr(0, kNameDigits), recording);
}

void CallRecorder::write_file(const std::string& name, const Recording& recording) {
  const Status status = folder_.write(name, to_file(recording));
  if (status.code() == Code::already_exists) {
    known_.fetch_add(1, std::memory_order_relaxed);
  } else if (!status.ok()) {
    if (status.reason() == "record.full") has_room_.store(false, std::memory_order_relaxed);
    log_failure(status);
  } else {
    written_.fetch_add(1, std::memory_order_relaxed);
    const bool dumped = recording.cause == Cause::dumped;
    log_.tell(dumped ? Level::info : Level::warning, "record.written", recording.op,
              recording.implementation, name, [&] {
                return base::concat(
                    "a call that ", dumped ? "was asked for" : name_of(recording.cause),
                    " was recorded; replay it with 'opmux replay ", folder_.path_of(name), "'");
              });
  }
}

void CallRecorder::log_failure(const Status& why) {
  const bool full = why.reason() == "record.full";
  (full ? left_out_ : failed_).fetch_add(1, std::memory_order_relaxed);
  problem_.update([&](std::string& problem) {
    problem = why.message();
    return true;
  });
  log_.tell(Level::warning, why.reason(), "", "", "",
            [&] { return base::concat("calls cannot be recorded: ", why.message()); });
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

}  // namespace opmux::replay
