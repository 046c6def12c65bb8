// Command queues and the results of the commands enqueued in them.
#pragma once

#include <opmux/abi.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/handles.hpp"

namespace opmux::backends::opencl {

// Sets the host, to which errors of asynchronous commands are reported.
void set_host(const opmux_host* host);

// An enqueued command. The first thread that sees how it ended reports an error to the host, once.
class Pending {
 public:
  Pending(opmux_device device, void* stream) : device_(device), stream_(stream) {}

  // A kernel's error flag is copied here: nonzero means that the call's data were invalid.
  cl_int wrong = 0;
  // Error text if `wrong` is nonzero; a string literal.
  const char* wrong_text = "";
  Memory flag;  // Device copy of `wrong`; must live until the command has ended.
  // Earlier commands of the same call. Kept because some drivers crash if a command fails whose
  // event has been released.
  std::vector<Event> before;

  // Returns the outcome of a command that ended with this status, after reporting an error to the
  // host.
  int32_t settle(cl_int status);

 private:
  opmux_device device_;
  void* stream_;
  std::once_flag told_;
};

// One queue and its commands whose outcomes finish() has not yet returned. Thread-safe.
class Stream {
 public:
  // `named` is the handle by which calls refer to this stream.
  Stream(opmux_device device, cl_command_queue queue, void* named)
      : device_(device), queue_(queue), named_(named) {}

  cl_command_queue queue() const { return queue_; }
  std::shared_ptr<Pending> pending() const { return std::make_shared<Pending>(device_, named_); }
  // Registers a completion callback and keeps the command for finish().
  void watch(Event event, std::shared_ptr<Pending> pending);
  // Waits for all commands. Returns the first outcome since the last finish() that was not ok.
  int32_t finish();

 private:
  struct Watched {
    Event event;
    std::shared_ptr<Pending> pending;
  };
  using Ended = std::vector<Watched>;
  // Removes and returns the completed commands; requires mutex_.
  Ended take_ended();
  // Reports errors to the host, which may call back into this stream; must be called without
  // mutex_.
  void settle(const Ended& ended);

  opmux_device device_;
  cl_command_queue queue_;
  void* named_;
  std::mutex mutex_;
  std::deque<Watched> watched_;
  int32_t first_bad_ = OPMUX_OK;
};

// The streams of one device, keyed by queue; a program may pass queues that it created.
class Streams {
 public:
  explicit Streams(opmux_device device) : device_(device) {}
  // The stream lives as long as this object, because completion callbacks may arrive late.
  Stream& of(cl_command_queue queue, void* named);

 private:
  opmux_device device_;
  std::mutex mutex_;
  std::map<cl_command_queue, std::unique_ptr<Stream>> streams_;
};

}  // namespace opmux::backends::opencl
