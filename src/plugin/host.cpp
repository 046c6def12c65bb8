#include "plugin/host.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <opmux/version.h>

#include "base/locks.hpp"
#include "base/memory.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

using Listeners = std::vector<std::shared_ptr<const HostListener::Entry>>;

/// Never destroyed, because a plugin's thread may call the host while the process ends.
base::Published<Listeners>& listeners() {
  static constinit base::Lazy<base::Published<Listeners>> all;
  return all.get();
}

template <class Notify>
void notify_all(Notify&& notify) noexcept {
  try {
    const std::shared_ptr<const Listeners> all = listeners().get();
    for (const auto& listener : *all) {
      if (!listener->ended.load(std::memory_order_acquire)) notify(listener->events);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): a plugin cannot handle it
  }
}

/// No optional feature is defined beyond the minor version yet.
int32_t has(void*, opmux_str) { return 0; }

void log(void*, int32_t level, opmux_str text) {
  notify_all([&](const HostEvents& events) {
    if (!events.log) return;
    const Result<std::string> read = read_text(text, "text of a log line", Lines::many);
    events.log(std::clamp(level, 0, 3), read ? *read : "(a log line that is not valid text)");
  });
}

void report_device_error(void*, opmux_device device, void* stream, int32_t code) {
  notify_all([&](const HostEvents& events) {
    if (events.device_error) events.device_error(Device{device.type, device.id}, stream, code);
  });
}

}  // namespace

const opmux_host& process_host() {
  static constinit const opmux_host host{sizeof(opmux_host),
                                         OPMUX_ABI_MAJOR,
                                         OPMUX_ABI_MINOR,
                                         nullptr,
                                         OPMUX_STR(OPMUX_VERSION),
                                         has,
                                         log,
                                         report_device_error};
  return host;
}

HostListener::HostListener(HostEvents events)
    : entry_(std::make_shared<const Entry>(std::move(events))) {
  listeners().update([&](Listeners& all) {
    std::erase_if(all, [](const auto& one) { return one->ended.load(); });
    return all.push_back(entry_), true;
  });
}

HostListener::~HostListener() {
  entry_->ended.store(true, std::memory_order_release);
  // Without memory for a shorter list, the next listener removes the entry.
  base::if_memory(
      [&] { listeners().update([&](Listeners& all) { return std::erase(all, entry_) != 0; }); });
}

}  // namespace opmux::plugin
