#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/implementation.hpp>
#include <opmux/tensor.hpp>

#include "base/locks.hpp"

namespace opmux::registry {

class StatedArchitectures;

/// The implementations that were enqueued last on each stream of a device. They are the suspects
/// when the device reports an asynchronous error. Thread-safe and lock-free. Streams that hash to
/// the same ring share its slots.
class StreamHistory {
 public:
  static constexpr size_t kLength = 32;

  void note(Device device, const void* stream, uint32_t implementation) noexcept;
  /// Implementation numbers of the latest calls on a stream, newest first, at most kLength.
  std::vector<uint32_t> latest(Device device, const void* stream) const;

 private:
  static constexpr size_t kRings = 64;
  struct Ring {
    std::atomic<uint32_t> next{0};
    /// Upper half: hash of the stream, never 0. Lower half: implementation number. 0 = empty.
    std::array<std::atomic<uint64_t>, kLength> words{};
  };
  std::array<Ring, kRings> rings_;
};

/// A backend's functions for device memory that the host cannot read directly.
struct DeviceAccess {
  void* user_data = nullptr;
  opmux_device_table functions{};
};

/// A backend as a plugin or the program describes it, before it is registered.
struct BackendDraft {
  std::string name;
  Kind kind = Kind::vendor;
  std::string vendor;
  int32_t device_type = OPMUX_DEVICE_CPU;
  std::string device_name;  ///< name of device_type if a vendor defines it; may be empty
  uint32_t flags = 0;       ///< OPMUX_BACKEND_*
  int priority = -1;
  std::string plugin;    ///< plugin that registered it; empty = the program
  std::string build_id;  ///< build of the plugin, by which a quarantine recognizes it
  /// Whether it starts enabled, as the program says; nullopt: unless it has
  /// OPMUX_BACKEND_DEFAULT_OFF.
  std::optional<bool> default_enable;
  /// Returns nullopt or empty text if the backend is available, else the reason why it is not. Not
  /// set: always available.
  std::function<std::optional<std::string>()> probe;
  std::optional<DeviceAccess> device;  ///< nullopt if the CPU can read the memory
  /// Returns the architecture of a device by its number, as dotted numbers; empty if it has none.
  /// Not set: no device has one.
  std::function<std::string(int32_t)> architecture;
  std::shared_ptr<void> owner;  ///< keeps the functions' code and data alive
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
  const std::string& build_id() const { return draft_.build_id; }
  int32_t device_type() const { return draft_.device_type; }
  uint32_t flags() const { return draft_.flags; }
  const DeviceAccess* device() const { return draft_.device ? &*draft_.device : nullptr; }
  /// Recent calls per stream; null if calls are complete when they return.
  StreamHistory* history() const { return history_.get(); }
  /// Whether the duration of calls can be measured: by the clock if calls are complete when they
  /// return, otherwise by events of the device if the backend has functions for them.
  bool can_be_timed() const {
    return history_ == nullptr ||
           (draft_.device && draft_.device->functions.event_record != nullptr);
  }
  int priority() const;
  /// The architecture of a device of this backend as it states it; empty if it states none. Asks
  /// once per device and process. The backend must be available.
  std::string architecture(int32_t device) const;
  /// Architectures that the program states; null if the backend belongs to no registry.
  const StatedArchitectures* stated_architectures() const { return stated_.get(); }
  void use(std::shared_ptr<const StatedArchitectures> stated) { stated_ = std::move(stated); }

  /// Runs the probe at the first call in a process and caches the result. After a fork the probe
  /// runs again if the backend has OPMUX_BACKEND_FORK_REINIT. The probe of a quarantined backend
  /// does not run. A probe that calls this function, on whichever thread it runs, gets "not
  /// available" (see base::NoCallbackGuard).
  bool available() const;
  /// Why the backend is not available; empty if it is available or was not probed yet.
  std::string unavailable_reason() const;

  /// Whether the backend starts enabled.
  bool default_enable() const {
    return draft_.default_enable.value_or((draft_.flags & OPMUX_BACKEND_DEFAULT_OFF) == 0);
  }
  /// Whether settings enable the backend, independent of available(). Initially default_enable().
  bool enabled() const { return enabled_.load(std::memory_order_acquire); }
  void set_enabled(bool on) { enabled_.store(on, std::memory_order_release); }

  /// Why the backend is quarantined; null if it is not. Decisions read it. The text must outlive
  /// the backend.
  std::atomic<const std::string*>& quarantined() const { return quarantined_; }

  /// Call before an implementation of this backend first runs in a process.
  void mark_used() const;
  /// Whether the backend was used in a parent process and cannot work in this forked child.
  bool lost_by_fork() const;

 private:
  struct Answer {
    bool available;
    std::string reason;
    const Answer* previous;  ///< answer of the parent process; kept because readers may hold it
  };
  const Answer& answer() const;
  bool answered(uint64_t process) const;
  const Answer* ask() const;

  BackendDraft draft_;
  std::shared_ptr<const StatedArchitectures> stated_;
  mutable base::ForkGuarded<std::map<int32_t, std::string>> architectures_;
  std::atomic<bool> enabled_;
  std::unique_ptr<StreamHistory> history_;
  mutable std::atomic<uint64_t> used_in_process_{0};
  mutable std::atomic<const Answer*> answer_{nullptr};   ///< freed with this backend
  mutable std::atomic<uint32_t> without_memory_{0};      ///< times that the probe lacked memory
  mutable std::atomic<uint64_t> probing_in_process_{0};  ///< acts as a lock; 0 = free
  mutable std::atomic<uint64_t> answered_in_process_{0};
  mutable std::atomic<const std::string*> quarantined_{nullptr};
};

}  // namespace opmux::registry
