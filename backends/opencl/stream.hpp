// Queues, and what becomes of what was put into them.
#pragma once

#include <opmux/abi.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/handles.hpp"

namespace opmux::backends::opencl {

// The host, once it has introduced itself; errors found later are told to it.
void set_host(const opmux_host* host);

// A command that was enqueued; whoever first learns how it ended tells the host, once.
class Pending {
 public:
  Pending(opmux_device device, void* stream) : device_(device), stream_(stream) {}

  // Where a kernel's finding is read to: anything but 0 means that the call's data were wrong.
  cl_int wrong = 0;
  // What `wrong` stands for; a literal.
  const char* wrong_text = "";
  Memory flag;  // where the kernel writes it, alive until the command ended
  // Of the same call's commands before: a driver may not survive that one fails which nobody holds.
  std::vector<Event> before;

  // The outcome of a command that ended with this status; returns when the host was told.
  int32_t settle(cl_int status);

 private:
  opmux_device device_;
  void* stream_;
  std::once_flag told_;
};

// One queue and the commands of it that nobody has asked about yet. Thread-safe.
class Stream {
 public:
  // `named` is what calls name it by.
  Stream(opmux_device device, cl_command_queue queue, void* named)
      : device_(device), queue_(queue), named_(named) {}

  cl_command_queue queue() const { return queue_; }
  std::shared_ptr<Pending> pending() const { return std::make_shared<Pending>(device_, named_); }
  // Hears when the command ends, and keeps it for finish().
  void watch(Event event, std::shared_ptr<Pending> pending);
  // Waits until everything is done. The first outcome that was not ok since the last time.
  int32_t finish();

 private:
  struct Watched {
    Event event;
    std::shared_ptr<Pending> pending;
  };
  using Ended = std::vector<Watched>;
  // Takes out what ended; the lock must be held.
  Ended take_ended();
  // The host may ask something of this stream when it is told, so the lock must not be held.
  void settle(const Ended& ended);

  opmux_device device_;
  cl_command_queue queue_;
  void* named_;
  std::mutex mutex_;
  std::deque<Watched> watched_;
  int32_t first_bad_ = OPMUX_OK;
};

// The streams of one device, known by their queues; a program may bring queues of its own.
class Streams {
 public:
  explicit Streams(opmux_device device) : device_(device) {}
  // Lives as long as this: a callback may come late.
  Stream& of(cl_command_queue queue, void* named);

 private:
  opmux_device device_;
  std::mutex mutex_;
  std::map<cl_command_queue, std::unique_ptr<Stream>> streams_;
};

}  // namespace opmux::backends::opencl
