#include "health/breaker_registry.hpp"

#include <algorithm>

#include "base/memory.hpp"

namespace opmux::health {
namespace {

/// Implementations without a build id are identified by their registration number, so that a later
/// registration of the same id gets a new breaker.
std::string build_of(const registry::ImplementationRecord& implementation) {
  return implementation.build_id.empty() ? "#" + std::to_string(implementation.number)
                                         : implementation.build_id;
}

std::string class_text(const BreakerEntry& entry, const BreakerChange::Step& step) {
  if (step.cell == Breaker::kWhole) return "all calls";
  if (step.cell == Breaker::kOverflow) return "all other classes";
  return describe(step.key, *entry.schema);
}

}  // namespace

std::string_view describe(Cause cause) {
  switch (cause) {
    case Cause::failures: return "too many consecutive failures";
    case Cause::failure_rate: return "failure rate too high";
    case Cause::slow_rate: return "slow-call rate too high";
    case Cause::probe: return "result of the half-open probes";
    case Cause::classes: return "too many open classes";
    case Cause::time: return "open time elapsed";
    case Cause::hand: return "manual override";
    case Cause::mismatch: return "result differs from the reference";
    case Cause::none: break;
  }
  return "";
}

BreakerEntry* BreakerRegistry::find(const registry::ImplementationRecord& implementation) const {
  if (count_.load(std::memory_order_acquire) == 0) return nullptr;
  return table_.with([&](Table& table) -> BreakerEntry* {
    const auto found = table.entries.find({implementation.id, build_of(implementation)});
    return found == table.entries.end() ? nullptr : found->second.get();
  });
}

BreakerRegistry::Place BreakerRegistry::add(const registry::ImplementationRecord& implementation,
                                            bool* is_new) {
  auto schema = host_.schema_of(implementation.op);
  return table_.with([&](Table& table) -> Place {
    auto& group = table.groups[implementation.op];
    if (group == nullptr) group = std::make_unique<Group>();
    const std::pair key(implementation.id, build_of(implementation));
    const auto found = table.entries.find(key);
    if (found != table.entries.end()) return {found->second.get(), group.get()};
    if (table.entries.size() >= kMaxBreakers || schema == nullptr) return {};
    const uint64_t seed = seed_ + table.entries.size() * 0x9E3779B97F4A7C15;
    // Each breaker numbers its changes in a range of 2^40.
    const uint64_t changes = uint64_t{table.entries.size()} << 40;
    auto entry = std::make_unique<BreakerEntry>(implementation, key.second, std::move(schema), seed,
                                                changes);
    BreakerEntry* const made = entry.get();
    table.entries.emplace(key, std::move(entry));
    group->breakers().add(*made);
    count_.store(table.entries.size(), std::memory_order_release);
    if (is_new != nullptr) *is_new = true;
    return {made, group.get()};
  });
}

BreakerRegistry::Place BreakerRegistry::make(const registry::ImplementationRecord& implementation) {
  bool is_new = false;
  const Place place = add(implementation, &is_new);
  if (is_new && place.entry->breaker.set_limits(host_.limits_of(*place.entry)).publish)
    place.group->publish_limits([&] { return publish(place.entry->op); });
  return place;
}

uint64_t BreakerRegistry::publish(const std::string& op) const {
  host_.publish(op);
  return now_ns();
}

void BreakerRegistry::follow(const Place& place, const BreakerChange& change, uint64_t now_ns) {
  place.group->follow(change, now_ns, [&] { return publish(place.entry->op); });
  if (change.publish) host_.wake();
  // The breaker has changed already, so listeners are left out if there is no memory to call them.
  base::if_memory([&] {
    for (uint8_t i = 0; i < change.count; ++i) {
      const BreakerChange::Step& step = change.steps[i];
      host_.tell({place.entry, class_text(*place.entry, step), step.from, step.to, step.openings,
                  step.open_for_ns, step.change, step.cause});
    }
  });
}

void BreakerRegistry::note(const registry::ImplementationRecord& implementation,
                           const schema::Signature& signature, const Pass& pass, Ending ending) {
  if (implementation.kind == Kind::reference) return;
  const Place place = make(implementation);
  if (place.entry == nullptr) {
    not_watched_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t now = now_ns();
  follow(place, place.entry->breaker.leave(BreakerKey::of(signature), pass, ending, now), now);
}

void BreakerRegistry::trip(const registry::ImplementationRecord& implementation,
                           const schema::Signature& signature, uint64_t ended_ns) {
  if (implementation.kind == Kind::reference) return;
  const Place place = make(implementation);
  if (place.entry == nullptr) {
    not_watched_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t now = now_ns();
  follow(place, place.entry->breaker.trip(BreakerKey::of(signature), ended_ns, now), now);
}

bool BreakerRegistry::compares_times(const registry::ImplementationRecord& implementation) const {
  BreakerEntry* const entry = find(implementation);
  return entry != nullptr && entry->breaker.compares_times();
}

void BreakerRegistry::compare(const registry::ImplementationRecord& implementation,
                              const schema::Signature& signature, uint64_t took_ns,
                              uint64_t reference_ns, uint64_t ended_ns) {
  if (implementation.kind == Kind::reference) return;
  const Place place = make(implementation);
  if (place.entry == nullptr) return;
  const uint64_t now = now_ns();
  follow(
      place,
      place.entry->breaker.compare(BreakerKey::of(signature), took_ns, reference_ns, ended_ns, now),
      now);
}

Status BreakerRegistry::force(const registry::ImplementationRecord& implementation, Force what) {
  if (implementation.kind == Kind::reference) {
    return {Code::unsupported, "health.reference",
            implementation.id + " is a reference implementation: its breaker cannot be opened"};
  }
  const Place place = make(implementation);
  if (place.entry == nullptr) {
    return {Code::resource, "health.too_many",
            "limit of " + std::to_string(kMaxBreakers) + " circuit breakers reached"};
  }
  const uint64_t now = now_ns();
  follow(place, place.entry->breaker.force(what, now), now);
  return {};
}

uint64_t BreakerRegistry::advance(uint64_t now_ns) {
  std::vector<std::pair<std::string, Group*>> groups;
  table_.with([&](Table& table) {
    for (const auto& [op, group] : table.groups) groups.emplace_back(op, group.get());
  });
  for (const Place& place : places()) {
    if (place.entry->breaker.next_due_ns() <= now_ns)
      follow(place, place.entry->breaker.advance(now_ns), now_ns);
  }
  for (const auto& [op, group] : groups) {
    group->flush(now_ns, [&, name = op] { return publish(name); });
  }
  return next_due_ns();
}

uint64_t BreakerRegistry::next_due_ns() const {
  return table_.with([](Table& table) {
    uint64_t due = Breaker::kNever;
    for (const auto& entry : table.entries)
      due = std::min(due, entry.second->breaker.next_due_ns());
    for (const auto& group : table.groups) due = std::min(due, group.second->next_due_ns());
    return due;
  });
}

void BreakerRegistry::limits_changed() {
  std::map<Group*, const std::string*> changed;
  for (const Place& place : places()) {
    if (place.entry->breaker.set_limits(host_.limits_of(*place.entry)).publish)
      changed.emplace(place.group, &place.entry->op);
  }
  for (const auto& [group, op] : changed)
    group->publish_limits([&, name = op] { return publish(*name); });
}

std::vector<BreakerRegistry::Place> BreakerRegistry::places() const {
  return table_.with([](Table& table) {
    std::vector<Place> all;
    for (const auto& [key, entry] : table.entries)
      all.push_back({entry.get(), table.groups[entry->op].get()});
    return all;
  });
}

void BreakerRegistry::for_each(const std::function<void(BreakerEntry&)>& visit) const {
  for (const Place& place : places()) visit(*place.entry);
}

}  // namespace opmux::health
