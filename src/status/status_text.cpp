#include "status/status_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/line_records.hpp"
#include "base/text.hpp"

namespace opmux::status_file {
namespace {

using base::RecordFields;

constexpr std::string_view kTitle = "opmux state page ";
constexpr std::string_view kVersion = "1";
/// Bytes reserved for the last record, `left_out`.
constexpr size_t kRoomAtTheEnd = 256;

/// Appends records up to kMaxStatePage and counts the records that do not fit.
class Body {
 public:
  template <class... Fields>
  void add(std::string_view kind, const Fields&... fields) {
    const std::string line = base::record(kind, fields...) + "\n";
    if (text_.size() + line.size() + kRoomAtTheEnd > kMaxStatePage) {
      ++left_out_;
    } else {
      text_ += line;
    }
  }
  std::string take(uint64_t left_out) {
    text_ += base::record("left_out", left_out + left_out_) + "\n";
    return std::move(text_);
  }

 private:
  std::string text_;
  uint64_t left_out_ = 0;
};

constexpr double kThousand = 1000;

/// Records have integers only.
uint64_t thousandths(double ratio) {
  return static_cast<uint64_t>(std::llround(std::clamp(ratio, 0.0, 1e9) * kThousand));
}

void add_operator(Body& body, const OperatorPageState& op) {
  body.add("operator", op.name);
  for (const ImplementationPageState& each : op.implementations) {
    body.add("implementation", each.id, each.kind, each.priority, each.calls, each.stood_in,
             each.declined, each.failed, each.resource, each.code, each.reason,
             each.decided_each_time, each.instance);
  }
}

void add_runtime(Body& body, const RuntimeState& own) {
  body.add("runtime", own.number, own.since, own.version, own.mode, own.frozen, own.disabled,
           own.generation, own.health);
  body.add("policy", own.policy_name, own.policy_digest, own.policy_origin, own.policy_version,
           own.policy_rules, own.policies_refused, own.last_refusal);
  for (const PolicySourceState& each : own.sources) {
    body.add("source", each.source, each.name, each.rules);
  }
  for (const BackendPageState& each : own.backends) {
    body.add("backend", each.name, each.state, each.reason);
  }
  for (const BreakerPageState& each : own.breakers) {
    body.add("breaker", each.implementation, each.what, each.state, each.why, each.openings);
  }
  for (const OperatorWithoutCandidates& each : own.without_candidates) {
    body.add("without_candidates", each.op, each.when, each.reason, each.allowed);
  }
  for (const OperatorPageState& each : own.operators) add_operator(body, each);
  for (const ChoicePageState& each : own.choices) {
    body.add("choice", each.op, each.when, each.generation, each.rests, each.note,
             base::join(each.accepted, " "));
  }
  for (const CellPageState& each : own.cells) {
    body.add("cell", each.op, each.tensors, each.dims, each.threads, each.calls, each.time_ns,
             each.error_ns);
  }
  for (const TuningProposal& each : own.proposals) {
    body.add("proposal", each.op, each.implementation, each.baseline, each.cell,
             thousandths(each.speed), thousandths(each.low), thousandths(each.high), each.rounds,
             each.time, each.applied, each.why_not);
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = base::take_until(text, ' ');
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

void read_process(RecordFields& fields, StatusPage& page) {
  page.process.pid = fields.number();
  page.process.name = fields.text();
  page.process.started = fields.number();
  page.mark.pid_namespace = fields.text();
  page.mark.start_ticks = fields.count();
}

void read_runtime(RecordFields& fields, RuntimeState& own) {
  own.number = fields.count();
  own.since = fields.number();
  own.version = fields.text();
  own.mode = fields.text();
  own.frozen = fields.count() != 0;
  own.disabled = fields.count() != 0;
  own.generation = fields.count();
  own.health = fields.text();
}

void read_policy(RecordFields& fields, RuntimeState& own) {
  own.policy_name = fields.text();
  own.policy_digest = fields.text();
  own.policy_origin = fields.text();
  own.policy_version = fields.count();
  own.policy_rules = fields.count();
  own.policies_refused = fields.count();
  own.last_refusal = fields.text();
}

ImplementationPageState read_implementation(RecordFields& fields) {
  ImplementationPageState own;
  own.id = fields.text();
  own.kind = fields.text();
  own.priority = fields.number();
  own.calls = fields.count();
  own.stood_in = fields.count();
  own.declined = fields.count();
  own.failed = fields.count();
  own.resource = fields.count();
  own.code = fields.text();
  own.reason = fields.text();
  own.decided_each_time = fields.count();  // 0 in files of earlier writers
  own.instance = fields.text();            // empty in files of earlier writers
  return own;
}

ChoicePageState read_choice(RecordFields& fields) {
  ChoicePageState own;
  own.op = fields.text();
  own.when = fields.text();
  own.generation = fields.count();
  own.rests = fields.text();
  own.note = fields.text();
  own.accepted = words_of(fields.text());
  return own;
}

CellPageState read_cell(RecordFields& fields) {
  CellPageState own;
  own.op = fields.text();
  own.tensors = fields.text();
  own.dims = fields.text();
  own.threads = fields.number();
  own.calls = fields.count();
  own.time_ns = fields.count();
  own.error_ns = fields.count();
  return own;
}

TuningProposal read_proposal(RecordFields& fields) {
  TuningProposal own;
  own.op = fields.text();
  own.implementation = fields.text();
  own.baseline = fields.text();
  own.cell = fields.text();
  for (double* ratio : {&own.speed, &own.low, &own.high})
    *ratio = static_cast<double>(fields.count()) / kThousand;
  own.rounds = fields.count();
  own.time = fields.number();
  own.applied = fields.count() != 0;
  own.why_not = fields.text();
  return own;
}

BreakerPageState read_breaker(RecordFields& fields) {
  BreakerPageState own;
  own.implementation = fields.text();
  own.what = fields.text();
  own.state = fields.text();
  own.why = fields.text();
  own.openings = fields.count();
  return own;
}

PolicySourceState read_source(RecordFields& fields) {
  PolicySourceState own;
  own.source = fields.text();
  own.name = fields.text();
  own.rules = fields.count();
  return own;
}

BackendPageState read_backend(RecordFields& fields) {
  BackendPageState own;
  own.name = fields.text();
  own.state = fields.text();
  own.reason = fields.text();
  return own;
}

OperatorWithoutCandidates read_without_candidates(RecordFields& fields) {
  OperatorWithoutCandidates own;
  own.op = fields.text();
  own.when = fields.text();
  own.reason = fields.text();
  own.allowed = fields.count() != 0;
  return own;
}

struct RecordKind {
  std::string_view name;
  void (*read)(RecordFields& fields, RuntimeState& own);
};
constexpr std::array<RecordKind, 12> kRecordKinds{{
    {"runtime", read_runtime},
    {"policy", read_policy},
    {"source", [](RecordFields& f, RuntimeState& own) { own.sources.push_back(read_source(f)); }},
    {"backend",
     [](RecordFields& f, RuntimeState& own) { own.backends.push_back(read_backend(f)); }},
    {"breaker",
     [](RecordFields& f, RuntimeState& own) { own.breakers.push_back(read_breaker(f)); }},
    {"operator",
     [](RecordFields& f, RuntimeState& own) { own.operators.push_back({f.text(), {}}); }},
    {"implementation",
     [](RecordFields& f, RuntimeState& own) {
       if (own.operators.empty()) return f.refuse();
       own.operators.back().implementations.push_back(read_implementation(f));
     }},
    {"choice", [](RecordFields& f, RuntimeState& own) { own.choices.push_back(read_choice(f)); }},
    {"cell", [](RecordFields& f, RuntimeState& own) { own.cells.push_back(read_cell(f)); }},
    {"proposal",
     [](RecordFields& f, RuntimeState& own) { own.proposals.push_back(read_proposal(f)); }},
    {"without_candidates",
     [](RecordFields& f, RuntimeState& own) {
       own.without_candidates.push_back(read_without_candidates(f));
     }},
    {"left_out", [](RecordFields& f, RuntimeState& own) { own.left_out = f.count(); }},
}};

/// Reads one line; ignores unknown kinds of records. False if the line is malformed.
bool read_record(std::string_view line, StatusPage& page) {
  RecordFields fields(line);
  const std::string name = fields.text();
  if (name == "process") read_process(fields, page);
  const auto kind = std::ranges::find(kRecordKinds, name, &RecordKind::name);
  if (kind != kRecordKinds.end()) kind->read(fields, page.process.runtimes.front());
  return fields.good();
}

Status damaged(std::string_view what) {
  return {Code::invalid_argument, "state_page.damaged",
          base::concat("invalid status file: ", what)};
}

}  // namespace

std::string status_file_body(const StatusPage& page) {
  Body body;
  const ProcessState& process = page.process;
  body.add("process", process.pid, process.name, process.started, page.mark.pid_namespace,
           page.mark.start_ticks);
  uint64_t left_out = 0;
  if (!process.runtimes.empty()) {
    add_runtime(body, process.runtimes.front());
    left_out = process.runtimes.front().left_out;
  }
  return body.take(left_out);
}

std::string status_file_text(std::string_view body, int64_t written, uint64_t updates) {
  return base::checked_line(base::concat(kTitle, kVersion, " ", written, " ", updates, "\n", body));
}

Result<StatusPage> parse_status_file(std::string_view text) {
  if (!text.starts_with(kTitle)) return damaged("the title line is missing");
  if (!text.ends_with('\n')) return damaged("the file is truncated");
  text.remove_suffix(1);
  const auto whole = base::text_of_checked(text);
  if (!whole || !whole->starts_with(kTitle)) return damaged("the checksum does not match");
  std::string_view rest = whole->substr(kTitle.size());
  std::string_view title = base::take_until(rest, '\n');
  if (const std::string_view version = base::take_until(title, ' '); version != kVersion) {
    return Status(Code::unsupported, "state_page.version",
                  base::concat("the status file has version ", version.substr(0, 16),
                               ", this opmux reads version ", kVersion));
  }
  StatusPage page;
  RuntimeState& own = page.process.runtimes.emplace_back();
  RecordFields times(title, ' ');
  own.written = times.number();
  own.updates = times.count();
  if (!times.good()) return damaged("the title line has no valid time");
  while (!rest.empty()) {
    const std::string_view line = base::take_until(rest, '\n');
    if (!read_record(line, page))
      return damaged(base::concat("malformed record '", line.substr(0, 80), "'"));
  }
  return page;
}

}  // namespace opmux::status_file
