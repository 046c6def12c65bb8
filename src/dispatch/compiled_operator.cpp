#include "dispatch/compiled_operator.hpp"

#include <mutex>

#include "base/text.hpp"
#include "dispatch/decide/class_layout.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/plan/exact_words.hpp"

namespace opmux::dispatch {
namespace {

RankPattern::Ranks ranks_of(const schema::Arguments& arguments) {
  RankPattern::Ranks ranks{};
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] != ArgTag::tensor || !arguments.values[i].tensor->present()) continue;
    const auto rank = static_cast<uint64_t>(arguments.values[i].tensor->rank());
    ranks[i / 16] |= (rank + 1) << (4 * (i % 16));
  }
  return ranks;
}

}  // namespace

uint64_t next_epoch() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

CompiledOperator::CompiledOperator(CompileInputs sources)
    : sources_(std::move(sources)), ids_(next_epoch()), epoch_(next_epoch()) {}

CompiledOperator::~CompiledOperator() {
  for (Scoped* at = spaces_.load(); at != nullptr;) {
    const std::unique_ptr<Scoped> owned(at);
    at = at->next;
  }
  for (RankPattern* at = patterns_.load(); at != nullptr;) {
    const std::unique_ptr<RankPattern> owned(at);
    at = at->next;
  }
}

DecisionCache* CompiledOperator::find_space(uint32_t scope_serial) const {
  for (Scoped* at = spaces_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    if (at->serial == scope_serial) return at->space.get();
  }
  return nullptr;
}

DecisionCache& CompiledOperator::space(uint32_t scope_serial, const policy::ScopeTable& scopes) {
  if (DecisionCache* const known = find_space(scope_serial)) return *known;
  // Compiling a policy of 10,000 rules takes tens of milliseconds of a processor.
  const std::scoped_lock lock(compiling_);
  if (DecisionCache* const known = find_space(scope_serial)) return *known;
  policy::PolicyLayerPtr layer = scope_serial == 0 ? nullptr : scopes.find(scope_serial);
  auto policy = policy::OperatorPolicy::compile(*sources_.policies, std::move(layer), sources_.op);
  auto made = std::make_unique<Scoped>(
      Scoped{scope_serial, std::make_unique<DecisionCache>(sources_, std::move(policy), ids_),
             spaces_.load(std::memory_order_relaxed)});
  DecisionCache& space = *made->space;
  spaces_.store(made.release(), std::memory_order_release);
  if (scope_serial != 0) scopes_.fetch_add(1, std::memory_order_relaxed);
  return space;
}

bool CompiledOperator::take_too_many_scopes() {
  uint32_t count = scopes_.load(std::memory_order_relaxed);
  if (count <= kMostScopes || (count & kTaken) != 0) return false;
  return (scopes_.fetch_or(kTaken, std::memory_order_relaxed) & kTaken) == 0;
}

const DecisionCache* CompiledOperator::unscoped() const { return find_space(0); }

const ShapeChecks& CompiledOperator::checks_for(const schema::Arguments& arguments) {
  const RankPattern::Ranks ranks = ranks_of(arguments);
  RankPattern* first = patterns_.load(std::memory_order_acquire);
  for (RankPattern* at = first; at != nullptr; at = at->next) {
    if (at->ranks == ranks) return at->checks;
  }
  auto made =
      std::make_unique<RankPattern>(RankPattern{ranks, ShapeChecks(schema(), arguments), first});
  // If two threads race, the list has the same pattern twice, which is harmless.
  while (!patterns_.compare_exchange_weak(made->next, made.get(), std::memory_order_acq_rel)) {
  }
  return made.release()->checks;
}

uint32_t CompiledOperator::classes() const {
  uint32_t count = 0;
  for (const Scoped* at = spaces_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    count += at->space->classes();
  }
  return count;
}

void OperatorSlot::renew_epoch() noexcept {
  CompiledOperator* const state = current.load(std::memory_order_acquire);
  if (state == nullptr) return;
  const uint64_t next = next_epoch();
  state->set_epoch(next);
  epoch.store(next, std::memory_order_release);
}

std::unique_ptr<CompiledOperator> OperatorSlot::replace(
    std::unique_ptr<CompiledOperator> next) noexcept {
  const uint64_t new_epoch = next == nullptr ? 0 : next->epoch();
  std::unique_ptr<CompiledOperator> before(
      current.exchange(next.release(), std::memory_order_acq_rel));
  epoch.store(new_epoch, std::memory_order_release);
  return before;
}

uint64_t exact_hash(const schema::Arguments& arguments) {
  uint64_t hash = arguments.count + (arguments.has_instance() ? 256 : 0);
  exact_words(arguments, [&](int64_t word) { hash = mix(hash, static_cast<uint64_t>(word)); });
  return hash;
}

uint64_t shape_hash(const schema::Arguments& arguments) {
  Declines::ShapeHash hash;
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] == ArgTag::tensor && arguments.values[i].tensor->present())
      hash.add(i, *arguments.values[i].tensor);
  }
  return hash.value();
}

DecisionCache& space_of(const OperatorSlot& slot, CompiledOperator& state, uint64_t context) {
  const EngineDependencies& use = slot.engine->dependencies();
  DecisionCache& space = state.space(static_cast<uint32_t>(context >> 32), *use.scopes);
  if (use.tuning != nullptr) use.tuning->log_problems();
  if (state.take_too_many_scopes()) {
    // The caller's mark keeps this state alive.
    slot.engine->discard_decisions_of(slot);
    use.log->tell(Level::warning, "dispatch.many_scopes", slot.name(), "", "", [] {
      return base::concat("called under more than ", CompiledOperator::kMostScopes,
                          " different scopes, so that the decisions under all of them are made "
                          "again; make each policy once and reuse it");
    });
  }
  return space;
}

}  // namespace opmux::dispatch
