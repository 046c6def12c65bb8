#pragma once

#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "protected_device.hpp"
#include "stage.hpp"

extern "C" int32_t opmux_plugin_query_v1_protected_device(const opmux_host* host,
                                                          opmux_plugin* out);

namespace opmux::test {

/// Memory of a protected device and a tensor in it.
struct OnDevice {
  DeviceMemory memory;
  TensorView view;
};

/// A runtime with the backend `protected` and its two devices.
class ProtectedDevices : public testing::Test {
 protected:
  explicit ProtectedDevices(Options options = bare()) : stage(with_sink(std::move(options))) {
    for (int32_t id = 0; id < protected_device::kDevices; ++id)
      protected_device::device(id).reset();
    const auto loaded = stage.runtime.plugins().load(opmux_plugin_query_v1_protected_device);
    EXPECT_TRUE(loaded) << loaded.error().to_string();
    access.emplace(stage.runtime.plugins().device_access("protected").value());
  }

  static protected_device::Device& driver(int32_t id) { return protected_device::device(id); }
  Operator op(const std::string& name) { return stage.runtime.op(name).value(); }

  /// Two rows with these elements, on a device.
  OnDevice put(const std::vector<float>& elements, int32_t id = 0) {
    const uint64_t bytes = elements.size() * sizeof(float);
    OnDevice made{access->allocate(bytes, id).value(), {}};
    made.view = made.memory.view(f32, {2, static_cast<int64_t>(elements.size() / 2)});
    EXPECT_TRUE(access->copy_in(made.memory, elements.data(), bytes).ok());
    EXPECT_TRUE(access->synchronize(nullptr, id).ok());
    return made;
  }
  /// Two rows of four zeros.
  OnDevice zeros(int32_t id = 0) { return put(std::vector<float>(8), id); }
  OnDevice numbers(int32_t id = 0) {
    std::vector<float> all(8);
    std::iota(all.begin(), all.end(), 1.0f);
    return put(all, id);
  }
  std::vector<float> get(const OnDevice& from) {
    std::vector<float> all(from.memory.size() / sizeof(float));
    EXPECT_TRUE(access->copy_out(all.data(), from.memory, from.memory.size()).ok());
    EXPECT_TRUE(access->synchronize(nullptr, from.memory.device().id).ok());
    return all;
  }
  static std::vector<float> peek(const OnDevice& from) {
    return driver(from.memory.device().id)
        .peek(from.memory.handle(), from.memory.size() / sizeof(float));
  }

  /// The implementation that a call ran, or the reason why none did.
  template <class... Args>
  std::string runs(const Operator& called, const Args&... args) {
    CallReport report;
    const Status status = called.with(report)(args...);
    return status.ok() ? report.implementation : std::string(status.reason());
  }

  std::vector<Event> events_with(const std::string& code) {
    const std::lock_guard lock(mutex_);
    std::vector<Event> found;
    for (const Event& each : events_) {
      if (each.code == code) found.push_back(each);
    }
    return found;
  }

 private:
  Options with_sink(Options options) {
    options.sink = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
    return options;
  }
  std::mutex mutex_;
  std::vector<Event> events_;

 public:
  Stage stage;
  std::optional<DeviceAccess> access;
};

inline constexpr const char* kOld = "protected.scale/protected.old";
inline constexpr const char* kNew = "protected.scale/protected.new";
inline constexpr const char* kAny = "protected.scale/protected.any";

}  // namespace opmux::test
