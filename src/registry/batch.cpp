#include "registry/batch.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "registry/implementation/draft_check.hpp"

namespace opmux::registry {
namespace {

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

/// Applies one batch to a snapshot, part by part: operators, backend, implementations, points.
class Application {
 public:
  Application(const Batch& batch, RegistrySnapshot& next, BatchResult& result)
      : batch_(batch), next_(next), result_(result) {}

  void operators();
  bool backend();
  void implementations();
  void points();

  bool changed() const { return changed_; }
  /// Whether anything was refused other than an operator and its implementations.
  bool refused() const { return refused_; }
  /// The added implementations; they have no number yet.
  const std::vector<std::shared_ptr<ImplementationRecord>>& records() const { return records_; }

 private:
  Result<std::shared_ptr<Backend>> backend_to_use() const;
  Status implementation(const ImplementationDraft& draft);
  Status point(const PointAnswerDraft& draft);
  void refuse(std::string what, Status why) {
    result_.refused.push_back({std::move(what), std::move(why)});
    refused_ = true;
  }

  const Batch& batch_;
  RegistrySnapshot& next_;
  BatchResult& result_;
  std::set<std::string, std::less<>> refused_operators_;
  std::vector<std::shared_ptr<ImplementationRecord>> records_;
  bool changed_ = false;
  bool refused_ = false;
};

/// New operators of a plugin are named vendor.name; names without a dot are reserved for opmux.
Status check_plugin_operator(const BackendDraft& backend, const schema::Schema& schema,
                             const RegistrySnapshot& next) {
  const bool own_name = schema.name.find('.') != std::string::npos;
  if (backend.plugin.empty() || own_name || next.find(schema.name) != nullptr) return {};
  return {
      Code::invalid_argument, "registry.name",
      base::concat("operator '", schema.name,
                   "' of a plugin must be named vendor.name; names without a dot are reserved")};
}

void Application::operators() {
  for (const std::string& text : batch_.operators) {
    const Result<schema::Schema> schema = schema::parse_schema(text);
    if (!schema) {
      result_.refused.push_back({text.substr(0, text.find('(')), schema.error()});
      continue;
    }
    Status outcome = check_plugin_operator(batch_.backend, *schema, next_);
    if (outcome.ok()) outcome = define_operator(next_, text, {}, changed_);
    if (outcome.ok()) continue;
    result_.refused.push_back({schema->name, std::move(outcome)});
    refused_operators_.insert(schema->name);
  }
}

Result<std::shared_ptr<Backend>> Application::backend_to_use() const {
  const BackendDraft& draft = batch_.backend;
  if (Status bad = check_backend(draft); !bad.ok()) return bad;
  if (!draft.device_name.empty()) {
    Status bad = name_device_type(draft.device_type, draft.device_name);
    if (!bad.ok()) return bad;
  }
  const auto at = next_.backends.find(draft.name);
  if (at == next_.backends.end()) {
    auto made = std::make_shared<Backend>(draft);
    made->use(next_.architectures);
    if (draft.architecture) next_.architectures->add(made);
    return made;
  }
  const Backend& other = *at->second;
  const auto exists = [&](std::string_view how) {
    return Status(Code::already_exists, "registry.backend",
                  base::concat("backend ", draft.name, " already exists, ", how));
  };
  if (!other.plugin().empty()) return exists("registered by plugin " + other.plugin());
  if (!draft.plugin.empty()) return exists("registered by the program");
  if (other.kind() != draft.kind) {
    return exists(base::concat("with kind ", name_of(other.kind()), ", not ", name_of(draft.kind)));
  }
  if (other.vendor() != draft.vendor) {
    return exists(base::concat("with vendor '", other.vendor(), "', not '", draft.vendor, "'"));
  }
  if (((other.flags() ^ draft.flags) & OPMUX_BACKEND_STREAM) != 0) {
    return exists((other.flags() & OPMUX_BACKEND_STREAM) != 0
                      ? "and its calls return before their work is done"
                      : "and its calls return when their work is done");
  }
  if (draft.default_enable && other.default_enable() != *draft.default_enable) {
    return exists(other.default_enable() ? "and is on by default" : "and is off by default");
  }
  return at->second;
}

bool Application::backend() {
  Result<std::shared_ptr<Backend>> use = backend_to_use();
  if (!use) {
    refuse(batch_.backend.name, use.error());
    return false;
  }
  result_.backend = *std::move(use);
  return true;
}

Status Application::implementation(const ImplementationDraft& draft) {
  const OperatorRecord* op = next_.find(draft.op);
  if (op == nullptr) {
    return {Code::not_found, "registry.unknown_operator",
            base::concat("there is no operator '", draft.op, "'",
                         base::suggestion(draft.op, keys_of(next_.operators)))};
  }
  const std::string id = id_of(draft, result_.backend->name());
  if (next_.find_implementation(id) != nullptr) {
    return {Code::already_exists, "registry.duplicate", base::concat(id, " is already registered")};
  }
  if (op->implementations.size() >= kMostImplementations) {
    return {Code::resource, "registry.too_many",
            base::concat(draft.op, " has ", kMostImplementations, " implementations, the limit")};
  }
  auto record = make_record(draft, *op->schema, result_.backend,
                            next_.cpu == nullptr ? base::cpu_features() : *next_.cpu);
  if (!record) return record.error();
  OperatorRecord changed_op = *op;
  changed_op.implementations.push_back(*record);
  put_operator(next_, std::move(changed_op));
  records_.push_back(*std::move(record));
  return {};
}

void Application::implementations() {
  for (const ImplementationDraft& draft : batch_.implementations) {
    const std::string id = id_of(draft, result_.backend->name());
    if (refused_operators_.contains(draft.op)) {
      result_.refused.push_back(
          {id, Status(Code::already_exists, "registry.schema_differs",
                      base::concat("the plugin's schema of operator ", draft.op, " was refused"))});
      continue;
    }
    if (Status bad = implementation(draft); !bad.ok()) refuse(id, std::move(bad));
  }
}

Status Application::point(const PointAnswerDraft& draft) {
  const Result<PointSignature> signature = parse_point_signature(draft.signature);
  if (!signature) return signature.error();
  PointAnswer answer{result_.backend, std::make_shared<const PointFunction>(draft.answer)};
  const bool declared = next_.points.contains(signature->name);
  if (declared || batch_.backend.plugin.empty()) {
    return answer_declared_point(next_, *signature, std::move(answer));
  }
  if (!draft.answer) {
    return {Code::invalid_argument, "point.no_function", "the answer has no function"};
  }
  const bool twice = std::any_of(
      next_.unclaimed.begin(), next_.unclaimed.end(), [&](const UnclaimedAnswer& other) {
        return other.signature.name == signature->name && other.answer.backend == answer.backend;
      });
  if (twice) {
    return {
        Code::already_exists, "point.duplicate",
        base::concat("backend ", result_.backend->name(), " answers ", signature->name, " twice")};
  }
  next_.unclaimed.push_back({*signature, std::move(answer)});
  return {};
}

void Application::points() {
  bool answers = false;
  for (const PointAnswerDraft& draft : batch_.points) {
    Status bad = point(draft);
    answers = answers || bad.ok();
    if (!bad.ok()) refuse(draft.signature, std::move(bad));
  }
  const bool empty = batch_.implementations.empty() && batch_.points.empty();
  if (records_.empty() && !answers && !empty) {
    result_.backend = nullptr;  // every implementation and answer was refused
    return;
  }
  next_.backends[result_.backend->name()] = result_.backend;
  changed_ = true;
}

/// Gives each record a number and adds it to `added`. Called when nothing can be refused any more,
/// so that refused implementations use up no numbers.
void number_all(const std::vector<std::shared_ptr<ImplementationRecord>>& records,
                std::vector<ImplementationPtr>& added) {
  static std::atomic<uint32_t> numbers{0};
  for (const auto& record : records) {
    record->number = numbers.fetch_add(1, std::memory_order_relaxed);
    added.push_back(record);
  }
}

/// Applies all parts of a batch.
void apply_parts(Application& application, const Batch& batch) {
  application.operators();
  const bool only_operators =
      batch.backend.name.empty() && batch.implementations.empty() && batch.points.empty();
  if (only_operators || !application.backend()) return;
  application.implementations();
  application.points();
}

}  // namespace

Status status_of(const Refusal& refusal) {
  if (refusal.what.empty()) return refusal.why;
  return {refusal.why.code(), std::string(refusal.why.reason()),
          base::concat(refusal.what, ": ", refusal.why.message())};
}

bool apply(const Batch& batch, bool all_or_nothing, RegistrySnapshot& next, BatchResult& result) {
  Application application(batch, next, result);
  apply_parts(application, batch);
  if (all_or_nothing && application.refused()) {
    result.backend = nullptr;
    return false;
  }
  number_all(application.records(), result.added);
  return application.changed();
}

namespace {

/// The first refusal of a batch. A refused backend is named by its first implementation, because
/// the program registers implementations and not backends.
Status first_refusal(const Batch& batch, BatchResult result) {
  Refusal& first = result.refused.front();
  if (first.what == batch.backend.name && !batch.implementations.empty()) {
    first.what = id_of(batch.implementations.front(), batch.backend.name);
  }
  return status_of(first);
}

}  // namespace

Result<std::vector<ImplementationPtr>> apply_together(std::span<const OperatorDraft> operators,
                                                      std::span<const Batch> batches,
                                                      RegistrySnapshot& next, bool& changed) {
  for (const OperatorDraft& op : operators) {
    Status bad = define_operator(next, op.schema, op.marks, changed);
    if (!bad.ok()) return status_of({op.schema.substr(0, op.schema.find('(')), std::move(bad)});
  }
  std::vector<std::shared_ptr<ImplementationRecord>> records;
  for (const Batch& batch : batches) {
    BatchResult result;
    Application application(batch, next, result);
    apply_parts(application, batch);
    if (!result.refused.empty()) return first_refusal(batch, std::move(result));
    records.insert(records.end(), application.records().begin(), application.records().end());
    changed |= application.changed();
  }
  std::vector<ImplementationPtr> added;
  number_all(records, added);
  return added;
}

Status define_operator(RegistrySnapshot& next, std::string_view schema_text, OperatorMarks marks,
                       bool& changed) {
  Result<schema::Schema> schema = schema::parse_schema(schema_text);
  if (!schema) return schema.error();
  if (const OperatorRecord* known = next.find(schema->name)) {
    const std::string is = known->schema->canonical(), wanted = schema->canonical();
    if (is == wanted && known->schema->opaque == schema->opaque) return {};
    return {Code::already_exists, "registry.schema_differs",
            base::concat("operator ", schema->name, " is defined as ", is,
                         " and cannot be redefined as ", wanted)};
  }
  if (const int output = schema->arg_index(marks.integer); output >= 0) {
    schema->args[static_cast<size_t>(output)].integer = true;
  }
  OperatorRecord record;
  record.schema = std::make_shared<const schema::Schema>(*std::move(schema));
  record.standard = marks.standard;
  record.data_checked = marks.data_checked;
  record.cpu = next.cpu;
  put_operator(next, std::move(record));
  changed = true;
  return {};
}

Status answer_declared_point(RegistrySnapshot& next, const PointSignature& signature,
                             PointAnswer answer) {
  const auto at = next.points.find(signature.name);
  if (at == next.points.end()) {
    return {Code::not_found, "point.unknown",
            base::concat("no specialization point is declared as '", signature.name, "'",
                         base::suggestion(signature.name, keys_of(next.points)))};
  }
  if (at->second->signature != signature) {
    return {Code::invalid_argument, "point.signature",
            base::concat("the answer has the signature ", signature.canonical(), ", the point has ",
                         at->second->signature.canonical())};
  }
  if (!*answer.function) {
    return {Code::invalid_argument, "point.no_function", "the answer has no function"};
  }
  auto record = std::make_shared<PointRecord>(*at->second);
  const std::string backend = answer.backend->name();
  if (!record->insert(std::move(answer))) {
    return {Code::already_exists, "point.duplicate",
            base::concat("backend ", backend, " answers ", signature.name, " twice")};
  }
  at->second = std::move(record);
  return {};
}

}  // namespace opmux::registry
