#include "runtime/health_keeper.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "base/descriptor.hpp"
#include "base/text.hpp"

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

std::string what_of(uint8_t cell, const health::BreakerKey& key, const registry::Schema& schema) {
  if (cell == health::Breaker::kWhole) return "all calls";
  if (cell == health::Breaker::kOverflow) return "all other classes";
  return describe(key, schema);
}

void add_breakers(health::BreakerBoard& board, std::vector<BreakerInfo>& all) {
  const uint64_t now = board.now_ns();
  board.for_each([&](health::BoardEntry& entry) {
    entry.breaker.for_each_cell([&](uint8_t at, const health::BreakerKey& key,
                                    const health::BreakerCell& cell) {
      const bool open = cell.state == BreakerState::open && cell.open_until_ns > now;
      all.push_back(
          {entry.id, entry.op, what_of(at, key, *entry.schema), cell.state, cell.consecutive,
           cell.openings, open ? (cell.open_until_ns - now) / health::kMillisecondNs : 0,
           cell.state == BreakerState::closed ? "" : std::string(health::describe(cell.cause))});
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

/// Makes the transitions of breakers that are due at a time.
class HealthKeeper::Job final : public Maintenance::Job {
 public:
  explicit Job(HealthKeeper& keeper)
      : keeper_(keeper), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    keeper_.wake_.store(wake_.get(), std::memory_order_release);
  }
  uint64_t run(uint64_t now_ns) override {
    uint64_t calls = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &calls, sizeof(calls));
    health::BreakerBoard& board = keeper_.health_.breakers();
    const uint64_t now = board.now_ns(), next = board.advance(now);
    // Converted to the clock of `now_ns`, which may differ from that of the board.
    return next == Maintenance::kNever ? next : now_ns + (next > now ? next - now : 0);
  }
  int descriptor() const override { return wake_.get(); }

 private:
  HealthKeeper& keeper_;
  base::Descriptor wake_;
};

HealthKeeper::HealthKeeper(Parts parts)
    : parts_(std::move(parts)),
      clock_(*parts_.clock),
      health_({.clock = &clock_,
               .seed = std::random_device{}(),
               .publish = [this](const std::string& op) { parts_.engine().operator_changed(op); },
               .limits =
                   [this](const health::BoardEntry& entry) {
                     return breaker_limits(*parts_.policies(), entry.op,
                                           {entry.id, entry.kind, entry.vendor});
                   },
               .schema = [this](const std::string& op) -> std::shared_ptr<const registry::Schema> {
                 const registry::RegistrySnapshotPtr snapshot = parts_.registry();
                 const auto found = snapshot->operators.find(op);
                 if (found == snapshot->operators.end()) return nullptr;
                 return found->second->schema;
               },
               .tell = [this](const health::BreakerNotice& notice) { tell(notice); },
               .wake = [this] { wake(); }}) {}

HealthKeeper::~HealthKeeper() = default;

void HealthKeeper::wake() {
  if (!started_.exchange(true)) {
    parts_.maintenance().add([this] { return std::make_unique<Job>(*this); });
    return;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      ::write(wake_.load(std::memory_order_acquire), &one, sizeof(one));
}

void HealthKeeper::tell(const health::BreakerNotice& notice) {
  const health::BoardEntry& entry = *notice.entry;
  const BreakerEvent event{entry.id,
                           entry.op,
                           notice.what,
                           notice.from,
                           notice.to,
                           notice.openings,
                           notice.open_for_ns / health::kMillisecondNs,
                           std::string(health::describe(notice.cause))};
  const Level level = notice.to == BreakerState::closed ? Level::info : Level::warning;
  parts_.log->tell(level, code_for(notice.to), entry.op, entry.id, notice.what, [&] {
    std::string text = base::concat(notice.what, ": ", name_of(notice.to), ", ", event.why);
    if (notice.to == BreakerState::open)
      text += base::concat("; next probe in ", event.open_for_ms / 1000, " s");
    return text;
  });
  const auto listeners = listeners_.get();
  for (const BreakerListener& listener : *listeners) listener(event);
}

void HealthKeeper::on_breaker(BreakerListener listener) {
  listeners_.update([&](std::vector<BreakerListener>& all) {
    all.push_back(std::move(listener));
    return true;
  });
}

Status HealthKeeper::force(std::string_view id, BreakerForce what) {
  const registry::RegistrySnapshotPtr snapshot = parts_.registry();
  std::vector<std::string> known;
  for (const auto& [name, op] : snapshot->operators) {
    for (const auto& implementation : op->implementations) {
      if (implementation->id == id)
        return health_.breakers().force(*implementation, force_of(what));
      known.push_back(implementation->id);
    }
  }
  return {Code::not_found, "registry.unknown_implementation",
          base::concat("there is no implementation '", id, "'") + base::suggestion(id, known)};
}

void HealthKeeper::limits_changed() {
  const auto policies = parts_.policies();
  if (times_calls(*policies)) {
    const registry::RegistrySnapshotPtr snapshot = parts_.registry();
    for (const auto& [name, op] : snapshot->operators) {
      for (const auto& implementation : op->implementations) {
        const policy::Subject subject{implementation->id, implementation->kind,
                                      implementation->vendor};
        // Implementations that only enqueue work on a stream are not timed.
        if (implementation->kind != Kind::reference &&
            implementation->backend->history() == nullptr &&
            breaker_limits(*policies, name, subject).slow_call_ns != 0) {
          health_.breakers().prepare(*implementation);
        }
      }
    }
  }
  health_.breakers().limits_changed();
}

std::map<std::string, BreakerState> HealthKeeper::states() {
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

HealthReport HealthKeeper::report() {
  HealthReport report;
  add_breakers(health_.breakers(), report.breakers);
  add_backends(*parts_.registry(), report.breakers, health_.devices(), report.backends);
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
