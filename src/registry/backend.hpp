#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <opmux/abi.h>
#include <opmux/implementation.hpp>

#include "registry/stream_history.hpp"

namespace opmux::registry {

/// How the host reaches memory that it cannot read itself.
struct DeviceAccess {
  void* user_data = nullptr;
  opmux_device_table functions{};
};

struct BackendDraft {
  std::string name;
  Kind kind = Kind::vendor;
  std::string vendor;
  int32_t device_type = OPMUX_DEVICE_CPU;
  uint32_t flags = 0;  ///< OPMUX_BACKEND_*
  int priority = -1;
  std::string plugin;  ///< name of the plugin that brought it; empty = the program itself
  /// Empty text = available; else the reason why not. Not set = always available.
  std::function<std::optional<std::string>()> probe;
  std::optional<DeviceAccess> device;  ///< not set for memory that the CPU can read
  std::shared_ptr<void> owner;         ///< keeps what the functions need alive
};

/// A set of implementations with one availability probe. Thread-safe.
class Backend {
 public:
  explicit Backend(BackendDraft draft);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& name() const { return draft_.name; }
  Kind kind() const { return draft_.kind; }
  const std::string& vendor() const { return draft_.vendor; }
  const std::string& plugin() const { return draft_.plugin; }
  int32_t device_type() const { return draft_.device_type; }
  uint32_t flags() const { return draft_.flags; }
  const DeviceAccess* device() const { return draft_.device ? &*draft_.device : nullptr; }
  /// What runs on its streams; null if its calls are done when they return.
  StreamHistory* history() const { return history_.get(); }
  int priority() const;

  /// Asks the probe once per process, at the first call; later calls only read. After a fork a
  /// backend that says OPMUX_BACKEND_FORK_REINIT is asked again.
  bool available() const;
  /// Why it is not available; empty if it is or was not asked yet.
  std::string unavailable_reason() const;

  /// Apart from available: switched on or off by setting. Default on unless
  /// OPMUX_BACKEND_DEFAULT_OFF.
  bool enabled() const { return enabled_.load(std::memory_order_acquire); }
  void set_enabled(bool on) { enabled_.store(on, std::memory_order_release); }

  /// Called before an implementation of this backend first runs in a process.
  void mark_used() const;
  /// It was used in a parent process and cannot live in this one.
  bool lost_by_fork() const;

 private:
  struct Answer {
    bool available;
    std::string reason;
    const Answer* previous;  ///< of the parent process; readers may still look at it
  };
  const Answer& answer() const;
  bool answered(uint64_t process) const;
  const Answer* ask() const;

  BackendDraft draft_;
  std::atomic<bool> enabled_;
  std::unique_ptr<StreamHistory> history_;
  mutable std::atomic<uint64_t> used_in_process_{0};
  mutable std::atomic<const Answer*> answer_{nullptr};  ///< never freed before this backend
  mutable std::atomic<uint64_t> probing_in_process_{0};
  mutable std::atomic<uint64_t> answered_in_process_{0};
};

}  // namespace opmux::registry
