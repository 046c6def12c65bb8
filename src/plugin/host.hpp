#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <opmux/abi.h>
#include <opmux/tensor.hpp>

namespace opmux::plugin {

/// What plugins tell. Called from any thread; an exception ends there.
struct HostEvents {
  std::function<void(int level, std::string_view text)> log;  ///< 0 debug ... 3 error
  std::function<void(Device device, void* stream, int32_t code)> device_error;
};

/// What every plugin of this process is given; it lives as long as the process.
const opmux_host& process_host();

/// Hears what plugins tell as long as it lives.
class HostListener {
 public:
  explicit HostListener(HostEvents events);
  ~HostListener();
  HostListener(const HostListener&) = delete;
  HostListener& operator=(const HostListener&) = delete;

 private:
  std::shared_ptr<const HostEvents> events_;
};

}  // namespace opmux::plugin
