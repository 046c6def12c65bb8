#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <opmux/abi.h>
#include <opmux/tensor.hpp>

namespace opmux::plugin {

/// Callbacks for log lines and errors that plugins report. Called on any thread; exceptions are
/// swallowed.
struct HostEvents {
  std::function<void(int level, std::string_view text)> log;  ///< 0 debug ... 3 error
  std::function<void(Device device, void* stream, int32_t code)> device_error;
};

/// The host table that every plugin of this process receives. It lives as long as the process.
const opmux_host& process_host();

/// Receives the events of all plugins for as long as it lives.
class HostListener {
 public:
  explicit HostListener(HostEvents events);
  ~HostListener();
  HostListener(const HostListener&) = delete;
  HostListener& operator=(const HostListener&) = delete;

  struct Entry {
    explicit Entry(HostEvents its) : events(std::move(its)) {}
    HostEvents events;
    mutable std::atomic<bool> ended{false};  ///< the listener is destroyed
  };

 private:
  std::shared_ptr<const Entry> entry_;
};

}  // namespace opmux::plugin
