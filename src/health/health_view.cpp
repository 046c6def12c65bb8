#include "health/health_view.hpp"

#include <array>

#include "base/text.hpp"

namespace opmux::health {
namespace {

using registry::Reason;

/// Formats with one decimal.
std::string seconds(uint64_t ns) {
  const uint64_t tenths = (ns + kSecondNs / 20) / (kSecondNs / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

Ending ending_of(Code outcome) {
  if (outcome == Code::ok) return Ending::success;
  return outcome == Code::failed ? Ending::failure : Ending::neither;
}

}  // namespace

std::string describe(const BreakerCell& cell, uint64_t now_ns) {
  switch (cell.state) {
    case BreakerState::closed:
      if (cell.slow.failures() > 0) {
        return base::concat("watched: ", cell.slow.failures(), " of the last ", cell.slow.size(),
                            " calls were slow");
      }
      return "watched after a failure, " + std::to_string(cell.consecutive) +
             " consecutive failures so far";
    case BreakerState::half_open:
      return "half open, " + std::to_string(cell.permits_out) + " probes in flight";
    case BreakerState::isolated: return "isolated by a manual override until it is closed manually";
    case BreakerState::open: break;
  }
  const uint64_t left = cell.open_until_ns > now_ns ? cell.open_until_ns - now_ns : 0;
  return base::concat("open: circuit breaker opened ",
                      cell.openings == 1 ? "once" : std::to_string(cell.openings) + " times",
                      ", next probe in ", seconds(left));
}

HealthView::Answer Health::ask(const registry::ImplementationRecord& implementation,
                               const schema::Signature& signature, bool now) const {
  if (std::string lost = devices_.refusal(device_of(*signature.arguments)); !lost.empty())
    return {Reason::health_device_fatal, std::move(lost)};
  BreakerEntry* const entry = board_.find(implementation);
  if (entry == nullptr) return {};
  const BreakerKey key = BreakerKey::of(signature);
  if (!now) {
    if (!entry->breaker.published_open(key)) return {};
    return {Reason::health_open, "circuit breaker open"};
  }
  const auto cell = entry->breaker.cell_of(key);
  if (!cell || cell->state == BreakerState::closed || cell->state == BreakerState::half_open)
    return {};
  return {Reason::health_open, describe(*cell, board_.now_ns())};
}

void Health::add_dependencies(const registry::ImplementationRecord& implementation,
                              const schema::Schema& schema,
                              schema::Dependencies& dependencies) const {
  BreakerEntry* const entry = board_.find(implementation);
  if (entry == nullptr) return;
  bool others = false;
  schema::Dependencies of_open, of_all;
  entry->breaker.for_each_cell([&](uint8_t at, const BreakerKey& key, const BreakerCell& cell) {
    if (at == Breaker::kOverflow) others |= cell.published_open;
    if (at >= Breaker::kClasses) return;
    add_questions(key, schema, of_all);
    if (cell.published_open) add_questions(key, schema, of_open);
  });
  dependencies.add(others ? of_all : of_open);
}

std::string Health::remark(const registry::ImplementationRecord& implementation,
                           const schema::Signature& signature) const {
  BreakerEntry* const entry = board_.find(implementation);
  if (entry == nullptr) return {};
  const auto cell = entry->breaker.cell_of(BreakerKey::of(signature));
  return cell ? describe(*cell, board_.now_ns()) : "";
}

Breaker* Health::watch(const registry::ImplementationRecord& implementation) const {
  BreakerEntry* const entry = board_.find(implementation);
  return entry != nullptr && entry->breaker.announced_armed() ? &entry->breaker : nullptr;
}

const Breaker* Health::timer(const registry::ImplementationRecord& implementation) const {
  if (!implementation.backend->can_be_timed()) return nullptr;
  const BreakerEntry* const entry = board_.find(implementation);
  return entry != nullptr && entry->breaker.times_calls() ? &entry->breaker : nullptr;
}

bool Health::on_outcome(const registry::ImplementationRecord& implementation,
                        const schema::Signature& signature, Code outcome, const Pass& pass) {
  const Device device = device_of(*signature.arguments);
  const Ending ending = ending_of(outcome);
  // A lost device is not the implementation's fault. The CPU cannot be lost, so there it counts as
  // a failure.
  const bool failed = ending == Ending::failure ||
                      (outcome == Code::device_lost && device.type == OPMUX_DEVICE_CPU);
  if (failed || pass.permit || ending == Ending::success)
    board_.note(implementation, signature, pass, failed ? Ending::failure : ending);
  return devices_.on_outcome(device, outcome);
}

}  // namespace opmux::health
