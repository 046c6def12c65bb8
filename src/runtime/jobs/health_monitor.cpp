#include "runtime/jobs/health_monitor.hpp"

#include <algorithm>
#include <array>
#include <random>

#include "base/memory.hpp"
#include "base/text.hpp"
#include "shadow/shadow_checker.hpp"

namespace opmux::runtime {
namespace {

health::Force force_of(BreakerForce what) {
  switch (what) {
    case BreakerForce::open: return health::Force::open;
    case BreakerForce::close: return health::Force::close;
    case BreakerForce::isolate: break;
  }
  return health::Force::isolate;
}

std::string_view code_for(BreakerState state) {
  switch (state) {
    case BreakerState::closed: return "health.closed";
    case BreakerState::open: return "health.opened";
    case BreakerState::half_open: return "health.half_open";
    case BreakerState::isolated: break;
  }
  return "health.isolated";
}

std::string what_of(uint8_t cell, const health::BreakerKey& key, const schema::Schema& schema) {
  if (cell == health::Breaker::kWhole) return "all calls";
  if (cell == health::Breaker::kOverflow) return "all other classes";
  return describe(key, schema);
}

void add_breakers(health::BreakerRegistry& board, std::vector<BreakerInfo>& all) {
  const uint64_t now = board.now_ns();
  board.for_each([&](health::BreakerEntry& entry) {
    entry.breaker.for_each_cell(
        [&](uint8_t at, const health::BreakerKey& key, const health::BreakerCell& cell) {
          const bool open = cell.state == BreakerState::open && cell.open_until_ns > now;
          all.push_back(
              {entry.id, entry.op, what_of(at, key, *entry.schema), cell.state, cell.consecutive,
               cell.openings, open ? (cell.open_until_ns - now) / health::kMillisecondNs : 0,
               cell.state == BreakerState::closed ? "" : std::string(health::describe(cell.cause)),
               cell.change});
        });
  });
}

/// Whether the breaker of an implementation is not closed for some classes or for all calls.
struct Closed {
  bool some = false, all = false;
};

void add_backends(const registry::RegistrySnapshot& snapshot,
                  const std::vector<BreakerInfo>& breakers, health::DeviceHealth& devices,
                  std::vector<BackendHealth>& all) {
  std::map<std::string, Closed> shut;
  for (const BreakerInfo& info : breakers) {
    if (info.state == BreakerState::closed) continue;
    shut[info.implementation].some = true;
    shut[info.implementation].all |= info.what == "all calls";
  }
  std::map<std::string, size_t> implementations, some, whole;
  for (const auto& [name, op] : snapshot.operators) {
    for (const auto& implementation : op->implementations) {
      const std::string& backend = implementation->backend->name();
      ++implementations[backend];
      const auto found = shut.find(implementation->id);
      if (found == shut.end()) continue;
      ++some[backend];
      whole[backend] += found->second.all ? 1 : 0;
    }
  }
  const auto lost = devices.fatal_devices();
  for (const auto& [name, backend] : snapshot.backends) {
    BackendHealth entry{name, Health::healthy, ""};
    const auto device = std::ranges::find(lost, backend->device_type(), &Device::type);
    if (device != lost.end()) {
      entry = {name, Health::fatal, name_of(*device) + " is lost"};
    } else if (whole[name] != 0 && whole[name] == implementations[name]) {
      entry = {name, Health::unhealthy, "all of its implementations have an open breaker"};
    } else if (some[name] != 0) {
      entry = {name, Health::degraded,
               base::concat(some[name], " of its ", implementations[name],
                            " implementations have an open or half-open breaker")};
    }
    all.push_back(std::move(entry));
  }
}

void add_devices(health::DeviceHealth& health, std::vector<DeviceState>& all) {
  const auto lost = health.fatal_devices();
  for (const Device device : lost) all.push_back({device, Health::fatal, "lost"});
  for (const DeviceError& error : health.marks()) {
    if (std::ranges::find(lost, error.device) != lost.end()) continue;
    all.push_back(
        {error.device, Health::degraded,
         base::concat("reported error ", error.code, ", ", error.count, " errors so far")});
  }
}

}  // namespace

HealthMonitor::HealthMonitor(const base::Clock& clock, base::EventLog& log,
                             base::Maintenance& maintenance,
                             const registry::SnapshotSource& registry,
                             const policy::PolicySource& policies)
    : log_(log),
      registry_(registry),
      policies_(policies),
      clock_(clock),
      health_(*this, clock_, std::random_device{}()),
      job_(maintenance,
           [this] { return [this](uint64_t now_ns) { return advance_breakers(now_ns); }; }) {}

HealthMonitor::~HealthMonitor() = default;

health::BreakerLimits HealthMonitor::limits_of(const health::BreakerEntry& entry) const {
  return breaker_limits(*policies_.set(), entry.op, {entry.id, entry.kind, entry.vendor});
}

std::shared_ptr<const schema::Schema> HealthMonitor::schema_of(const std::string& op) const {
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  const registry::OperatorRecord* const found = snapshot->find(op);
  return found == nullptr ? nullptr : found->schema;
}

uint64_t HealthMonitor::advance_breakers(uint64_t now_ns) {
  health::BreakerRegistry& board = health_.breakers();
  const uint64_t now = board.now_ns(), next = board.advance(now);
  // Converted to the clock of `now_ns`, which may differ from that of the board.
  return next == base::Maintenance::kNever ? next : now_ns + (next > now ? next - now : 0);
}

void HealthMonitor::tell(const health::BreakerNotice& notice) {
  const health::BreakerEntry& entry = *notice.entry;
  const BreakerEvent event{entry.id,
                           entry.op,
                           notice.what,
                           notice.from,
                           notice.to,
                           notice.openings,
                           notice.open_for_ns / health::kMillisecondNs,
                           std::string(health::describe(notice.cause)),
                           notice.change};
  const Level level = notice.to == BreakerState::closed ? Level::info : Level::warning;
  log_.tell(level, code_for(notice.to), entry.op, entry.id, notice.what, [&] {
    std::string text = base::concat(notice.what, ": ", name_of(notice.to), ", ", event.why);
    if (notice.to == BreakerState::open)
      text += base::concat("; next probe in ", event.open_for_ms / 1000, " s");
    return text;
  });
  const auto listeners = listeners_.get();
  for (const BreakerListener& listener : *listeners) listener(event);
}

void HealthMonitor::on_breaker(BreakerListener listener) {
  listeners_.update([&](std::vector<BreakerListener>& all) {
    all.push_back(std::move(listener));
    return true;
  });
}

Status HealthMonitor::force(std::string_view id, BreakerForce what) {
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  if (const registry::ImplementationPtr implementation = snapshot->find_implementation(id)) {
    return health_.breakers().force(*implementation, force_of(what));
  }
  std::vector<std::string> known;
  for (const auto& [name, op] : snapshot->operators) {
    for (const auto& implementation : op->implementations) known.push_back(implementation->id);
  }
  return {Code::not_found, "registry.unknown_implementation",
          base::concat("there is no implementation '", id, "'") + base::suggestion(id, known)};
}

void HealthMonitor::limits_changed() {
  const auto policies = policies_.set();
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  const LimitSources before =
      applied_.with([&](LimitSources& now) { return std::exchange(now, {snapshot, policies}); });
  // Without memory the next publication applies all limits again.
  if (!base::if_memory([&] { apply_limits(before, *snapshot, *policies); }))
    applied_.with([](LimitSources& now) { now = {}; });
}

void HealthMonitor::apply_limits(const LimitSources& before,
                                 const registry::RegistrySnapshot& snapshot,
                                 const policy::PolicySet& policies) {
  bool concerned = before.policies == nullptr || *before.policies != policies;
  if (times_calls(policies)) {
    const bool only_new = !concerned && before.registry != nullptr;
    for_each_new_implementation(
        only_new ? *before.registry : registry::RegistrySnapshot(), snapshot,
        [&](const auto& one) { concerned = time_if_limited(one, policies) || concerned; });
  }
  if (concerned) health_.breakers().limits_changed();
}

bool HealthMonitor::time_if_limited(const registry::ImplementationRecord& implementation,
                                    const policy::PolicySet& policies) {
  if (implementation.kind == Kind::reference || !implementation.backend->can_be_timed()) {
    return false;
  }
  const policy::Subject subject{implementation.id, implementation.kind, implementation.vendor};
  const health::BreakerLimits limits = breaker_limits(policies, implementation.op, subject);
  if (limits.slow_call_ns == 0 && limits.slow_factor == 0) return false;
  health_.breakers().prepare(implementation);
  if (limits.slow_factor != 0 && shadow::shadow_options(policies).every.value_or(0) == 0) {
    log_.tell(Level::warning, "health.not_compared", implementation.op, implementation.id, "", [] {
      return std::string(
          "slow_factor has no effect: no policy sets shadow: {every: N}, so that no "
          "call is compared with the reference");
    });
  }
  return true;
}

std::map<std::string, BreakerState> HealthMonitor::states() {
  std::map<std::string, BreakerState> worst;
  // From best to worst: closed, half open, open, isolated.
  constexpr std::array<int, 4> kRank{0, 2, 1, 3};
  const auto rank = [&](BreakerState state) { return kRank[static_cast<size_t>(state)]; };
  std::vector<BreakerInfo> all;
  add_breakers(health_.breakers(), all);
  for (const BreakerInfo& info : all) {
    BreakerState& state = worst[info.implementation];
    if (rank(info.state) > rank(state)) state = info.state;
  }
  return worst;
}

HealthReport HealthMonitor::report() {
  HealthReport report;
  add_breakers(health_.breakers(), report.breakers);
  add_backends(*registry_.snapshot(), report.breakers, health_.devices(), report.backends);
  add_devices(health_.devices(), report.devices);
  const auto worsen = [&](Health health, const std::string& reason) {
    if (health == Health::healthy) return;
    report.verdict =
        std::max(report.verdict, health == Health::unhealthy ? Health::degraded : health);
    report.reasons.push_back(reason);
  };
  for (const DeviceState& device : report.devices)
    worsen(device.health, name_of(device.device) + ": " + device.reason);
  for (const BackendHealth& backend : report.backends)
    worsen(backend.health, "backend " + backend.name + ": " + backend.reason);
  return report;
}

}  // namespace opmux::runtime

namespace opmux {

std::string_view name_of(Health health) noexcept {
  switch (health) {
    case Health::healthy: return "healthy";
    case Health::degraded: return "degraded";
    case Health::unhealthy: return "unhealthy";
    case Health::fatal: break;
  }
  return "fatal";
}

std::string_view name_of(BreakerState state) noexcept {
  switch (state) {
    case BreakerState::closed: return "closed";
    case BreakerState::open: return "open";
    case BreakerState::half_open: return "half open";
    case BreakerState::isolated: break;
  }
  return "isolated";
}

}  // namespace opmux

namespace opmux::runtime {
namespace {

template <class Value>
void fill(std::optional<Value>& field, const std::optional<Value>& weaker) {
  if (!field) field = weaker;
}

void fill(BreakerOptions& options, const BreakerOptions& weaker) {
  fill(options.consecutive_failures, weaker.consecutive_failures);
  fill(options.failure_rate, weaker.failure_rate);
  fill(options.window, weaker.window);
  fill(options.min_calls, weaker.min_calls);
  fill(options.open_for_ms, weaker.open_for_ms);
  fill(options.open_at_most_ms, weaker.open_at_most_ms);
  fill(options.permits, weaker.permits);
  fill(options.successes, weaker.successes);
  fill(options.slow_call_us, weaker.slow_call_us);
  fill(options.slow_rate, weaker.slow_rate);
  fill(options.slow_factor, weaker.slow_factor);
}

bool concerns(const Rule& rule, const policy::Subject& subject) {
  if (!rule.breaker || rule.when || rule.expired) return false;
  if (rule.impl.empty()) return true;
  const auto token = policy::Token::parse(rule.impl);
  return token && token->matches(subject);
}

void fill_from(const policy::PolicyLayer& layer, std::string_view op,
               const policy::Subject& subject, BreakerOptions& options) {
  const auto rules = layer.rules_for(op);
  const auto first =
      std::ranges::find_if(rules, [&](const Rule* rule) { return concerns(*rule, subject); });
  if (first != rules.end()) fill(options, *(*first)->breaker);
  fill(options, layer.policy().breaker);
  if (layer.outer() != nullptr) fill_from(*layer.outer(), op, subject, options);
}

template <class To, class From>
void take(To& to, const std::optional<From>& from, To factor = 1) {
  if (from && *from > 0) to = static_cast<To>(*from) * factor;
}

bool layer_times_calls(const policy::PolicyLayer& layer) {
  const auto limits = [](const BreakerOptions& options) {
    return options.slow_call_us || options.slow_factor;
  };
  const auto timed = [&](const Rule& rule) { return rule.breaker && limits(*rule.breaker); };
  return limits(layer.policy().breaker) || std::ranges::any_of(layer.policy().rules, timed) ||
         (layer.outer() != nullptr && layer_times_calls(*layer.outer()));
}

}  // namespace

bool times_calls(const policy::PolicySet& policies) {
  return std::ranges::any_of(policies.layers,
                             [](const auto& one) { return layer_times_calls(*one); });
}

health::BreakerLimits breaker_limits(const policy::PolicySet& policies, std::string_view op,
                                     const policy::Subject& subject) {
  BreakerOptions options;
  for (const auto& layer : policies.layers) fill_from(*layer, op, subject, options);
  health::BreakerLimits limits;
  take(limits.consecutive_failures, options.consecutive_failures);
  take(limits.failure_rate, options.failure_rate);
  take(limits.window, options.window);
  take(limits.min_calls, options.min_calls);
  take(limits.open_for_ns, options.open_for_ms, health::kMillisecondNs);
  take(limits.open_at_most_ns, options.open_at_most_ms, health::kMillisecondNs);
  take(limits.permits, options.permits);
  take(limits.successes, options.successes);
  take(limits.slow_call_ns, options.slow_call_us, uint64_t{1000});
  take(limits.slow_rate, options.slow_rate);
  take(limits.slow_factor, options.slow_factor);
  limits.window = std::min(limits.window, health::BreakerLimits::kMaxWindow);
  return limits;
}

}  // namespace opmux::runtime
