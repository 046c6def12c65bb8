#include "dispatch/decide/verifier.hpp"

#include <algorithm>

#include "base/status.hpp"
#include "base/system/thread_state.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;
using schema::FactKind;

/// Context of get_fact().
struct Shown {
  const registry::ImplementationRecord* implementation;
  const schema::Signature* signature;
  VerifierReads* reads;

  bool may_read(schema::Fact fact) const {
    if (implementation->recorded == nullptr)
      return std::ranges::find(implementation->verify_reads, fact) !=
             implementation->verify_reads.end();
    // Also if the fact turns out to be absent, because the answer depends on its absence.
    const RecordedRead read{implementation, fact};
    if (std::ranges::find(reads->facts, read) != reads->facts.end()) return true;
    reads->facts.push_back(read);
    implementation->recorded->add(fact);
    return true;
  }

  void note_outside(std::string_view what) const {
    const OutsideRead read{implementation, std::string(what)};
    std::vector<OutsideRead>& all = reads->outside;
    if (std::ranges::find(all, read) == all.end()) all.push_back(read);
  }
};

/// Gives a verifier the value of a fact. Returns 0 if the fact is absent or not visible.
int32_t get_fact(const void* context, uint32_t kind, opmux_str name, int64_t* value) {
  const auto& shown = *static_cast<const Shown*>(context);
  if (kind == OPMUX_FACT_OUTSIDE) {
    shown.note_outside({name.data, name.size});
    return 0;
  }
  const auto fact =
      resolve_fact(*shown.signature->schema, static_cast<FactKind>(kind), {name.data, name.size});
  if (!fact || !shown.may_read(*fact)) return 0;
  *value = value_of(*shown.signature, *fact);
  return *value == schema::kAbsent ? 0 : 1;
}

}  // namespace

Reason run_verifier(const registry::ImplementationRecord& implementation,
                    const schema::Signature& signature, VerifierReads& reads, std::string& text) {
  if (implementation.kernel.verify == nullptr) return Reason::none;
  const Shown shown{&implementation, &signature, &reads};
  const opmux_facts facts{sizeof(opmux_facts), 0, &shown, get_fact};
  base::ErrorSink why;
  const PreparationGuard inside(implementation, crash::Phase::verify);
  const base::FloatControl before;
  const int32_t outcome =
      implementation.kernel.verify(implementation.kernel.user_data, &facts, why.c());
  before.restore();
  if (outcome == OPMUX_OK) return Reason::none;
  text = why.text();
  if (const std::string code = why.code(); !code.empty()) {
    text = code + (text.empty() ? "" : ": ") + text;
  }
  if (outcome == OPMUX_DECLINED) {
    if (text.empty()) text = "its verifier gave no reason";
    return Reason::verify_refused;
  }
  text = "its verifier returned " + std::to_string(outcome) + ", which is not a valid outcome" +
         (text.empty() ? "" : ": " + text);
  return Reason::verify_broken;
}

void add_known_default(const schema::Schema& schema, size_t index, schema::Dependencies& into) {
  const schema::ArgType type = schema.args[index].type;
  if (type == schema::ArgType::string || type == schema::ArgType::int_list) {
    into.add(schema::Fact{FactKind::is_default, static_cast<uint8_t>(index)});
    return;
  }
  const std::string& name = schema.args[index].name;
  for (const FactKind kind : {FactKind::scalar, FactKind::present}) {
    if (const auto fact = resolve_fact(schema, kind, name)) into.add(*fact);
  }
}

}  // namespace opmux::dispatch
