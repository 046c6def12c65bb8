#include <opmux/device.hpp>

#include "base/text.hpp"
#include "registry/backend.hpp"
#include "runtime/core.hpp"

namespace opmux {
namespace {

opmux_device c_of(Device device) { return {device.type, device.id}; }

Status outcome(const registry::Backend& backend, int32_t returned, std::string_view what) {
  if (returned == OPMUX_OK) return {};
  const Code code = dispatch::outcome_of(returned);
  return {code, "device.function",
          base::concat(backend.name(), ": ", what, " returned ", name_of(code))};
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  if (handle_ == nullptr || backend_->lost_by_fork()) return;
  const registry::DeviceAccess& access = *backend_->device();
  access.functions.free(access.user_data, c_of(device_), handle_);
}

DeviceStream::~DeviceStream() {
  if (stream_ == nullptr || backend_->lost_by_fork()) return;
  const registry::DeviceAccess& access = *backend_->device();
  access.functions.stream_destroy(access.user_data, c_of(device_), stream_);
}

DeviceEvent::~DeviceEvent() {
  if (event_ == nullptr || backend_->lost_by_fork()) return;
  const registry::DeviceAccess& access = *backend_->device();
  access.functions.event_destroy(access.user_data, event_);
}

Status DeviceStream::synchronize() const {
  return DeviceAccess(backend_).synchronize(stream_, device_.id);
}

Device DeviceAccess::device(int32_t id) const { return {backend_->device_type(), id}; }

int32_t DeviceAccess::count() const {
  const registry::DeviceAccess& access = *backend_->device();
  return access.functions.count(access.user_data);
}

Result<DeviceMemory> DeviceAccess::allocate(uint64_t size, int32_t id) const {
  constexpr uint64_t kAlignment = 64;
  const registry::DeviceAccess& access = *backend_->device();
  DeviceMemory memory;
  memory.backend_ = backend_;
  memory.device_ = device(id);
  memory.size_ = size;
  Status status = outcome(
      *backend_,
      access.functions.alloc(access.user_data, c_of(device(id)), size, kAlignment, &memory.handle_),
      "allocating memory");
  if (status.ok()) return memory;
  memory.handle_ = nullptr;
  return status;
}

Result<DeviceStream> DeviceAccess::create_stream(int32_t id) const {
  const registry::DeviceAccess& access = *backend_->device();
  DeviceStream stream;
  stream.backend_ = backend_;
  stream.device_ = device(id);
  Status status =
      outcome(*backend_,
              access.functions.stream_create(access.user_data, c_of(device(id)), &stream.stream_),
              "creating a stream");
  if (status.ok()) return stream;
  stream.stream_ = nullptr;
  return status;
}

Status DeviceAccess::copy_in(const DeviceMemory& to, const void* from, uint64_t size,
                             void* stream) const {
  const registry::DeviceAccess& access = *backend_->device();
  return outcome(*backend_,
                 access.functions.copy(access.user_data, to.handle(), c_of(to.device()), from,
                                       c_of({}), size, stream),
                 "copying to the device");
}

Status DeviceAccess::copy_out(void* to, const DeviceMemory& from, uint64_t size,
                              void* stream) const {
  const registry::DeviceAccess& access = *backend_->device();
  return outcome(*backend_,
                 access.functions.copy(access.user_data, to, c_of({}), from.handle(),
                                       c_of(from.device()), size, stream),
                 "copying from the device");
}

Status DeviceAccess::synchronize(void* stream, int32_t id) const {
  const registry::DeviceAccess& access = *backend_->device();
  return outcome(*backend_,
                 access.functions.synchronize(access.user_data, c_of(device(id)), stream),
                 "synchronizing a stream");
}

Result<DeviceEvent> DeviceAccess::record_event(void* stream, int32_t id) const {
  const registry::DeviceAccess& access = *backend_->device();
  if (access.functions.event_record == nullptr) {
    return Status(Code::unsupported, "device.no_events",
                  base::concat(backend_->name(), " has no functions for events"));
  }
  DeviceEvent event;
  event.backend_ = backend_;
  Status status = outcome(
      *backend_,
      access.functions.event_record(access.user_data, c_of(device(id)), stream, &event.event_),
      "recording an event");
  if (status.ok()) return event;
  event.event_ = nullptr;
  return status;
}

Result<uint64_t> DeviceAccess::elapsed_ns(const DeviceEvent& start, const DeviceEvent& stop) const {
  if (start.event_ == nullptr || stop.event_ == nullptr || start.backend_.get() != backend_.get() ||
      stop.backend_.get() != backend_.get()) {
    return Status(Code::invalid_argument, "device.event",
                  base::concat("both events must have been recorded by ", backend_->name()));
  }
  const registry::DeviceAccess& access = *backend_->device();
  uint64_t nanoseconds = 0;
  Status status = outcome(
      *backend_,
      access.functions.event_elapsed_ns(access.user_data, start.event_, stop.event_, &nanoseconds),
      "reading the time between two events");
  if (!status.ok()) return status;
  return nanoseconds;
}

}  // namespace opmux
