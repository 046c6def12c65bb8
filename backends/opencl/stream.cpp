#include "backends/opencl/stream.hpp"

#include <atomic>
#include <string>
#include <utility>

namespace opmux::backends::opencl {
namespace {

std::atomic<const opmux_host*> told_host{nullptr};

// Watched commands per stream before completed ones are removed.
constexpr size_t kManyWatched = 32;

void tell(opmux_device device, void* stream, int32_t code, const std::string& text) {
  const opmux_host* host = told_host.load();
  if (host == nullptr) return;
  host->log(host->user_data, 3, {text.data(), text.size()});
  host->report_device_error(host->user_data, device, stream, code);
}

cl_int status_of(cl_event event) {
  cl_int status = CL_QUEUED;
  const cl_int asked =
      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return asked == CL_SUCCESS ? status : asked;
}

void CL_CALLBACK on_end(cl_event, cl_int status, void* context) {
  const std::unique_ptr<std::shared_ptr<Pending>> pending(
      static_cast<std::shared_ptr<Pending>*>(context));
  plugin::guarded(nullptr, [&] { (*pending)->settle(status); });
}

}  // namespace

void set_host(const opmux_host* host) { told_host.store(host); }

int32_t Pending::settle(cl_int status) {
  if (status >= 0 && wrong == 0) return OPMUX_OK;
  const int32_t outcome = status < 0 ? outcome_of(status) : OPMUX_INVALID_ARGUMENT;
  std::call_once(told_, [&] {
    const std::string text = status < 0
                                 ? "a command ended with OpenCL status " + std::to_string(status)
                                 : std::string(wrong_text);
    tell(device_, stream_, status < 0 ? status : outcome, "opencl: " + text);
  });
  return outcome;
}

void Stream::watch(Event event, std::shared_ptr<Pending> pending) {
  auto heard = std::make_unique<std::shared_ptr<Pending>>(pending);
  if (clSetEventCallback(event.get(), CL_COMPLETE, on_end, heard.get()) == CL_SUCCESS) {
    heard.release();  // NOLINT(bugprone-unused-return-value): the callback owns it
  }
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    if (watched_.size() >= kManyWatched) ended = take_ended();
    watched_.push_back({std::move(event), std::move(pending)});
  }
  settle(ended);
}

Stream::Ended Stream::take_ended() {
  Ended ended;
  while (!watched_.empty() && status_of(watched_.front().event.get()) <= CL_COMPLETE) {
    ended.push_back(std::move(watched_.front()));
    watched_.pop_front();
  }
  return ended;
}

void Stream::settle(const Ended& ended) {
  for (const Watched& watched : ended) {
    const int32_t outcome = watched.pending->settle(status_of(watched.event.get()));
    const std::lock_guard lock(mutex_);
    if (first_bad_ == OPMUX_OK) first_bad_ = outcome;
  }
}

int32_t Stream::finish() {
  const cl_int status = clFinish(queue_);
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    ended = take_ended();
  }
  settle(ended);
  const std::lock_guard lock(mutex_);
  const int32_t bad = std::exchange(first_bad_, OPMUX_OK);
  return bad != OPMUX_OK ? bad : outcome_of(status);
}

Stream& Streams::of(cl_command_queue queue, void* named) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Stream>& stream = streams_[queue];
  if (!stream) stream = std::make_unique<Stream>(device_, queue, named);
  return *stream;
}

}  // namespace opmux::backends::opencl
