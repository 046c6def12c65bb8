#include "protected_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace protected_device {
namespace {

constexpr uint64_t kPage = 4096, kCapacity = uint64_t{64} << 20;

ErrorReport& error_report() {
  static auto* const report = new ErrorReport;
  return *report;
}

uint64_t pages(uint64_t size) { return (std::max<uint64_t>(size, 1) + kPage - 1) & ~(kPage - 1); }

/// Reserves addresses without access rights, with a page behind them that is never mapped.
char* reserve(uint64_t size) {
  void* const at = mmap(nullptr, size + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

bool map_over(char* at, uint64_t size, int rights, int file) {
  return mmap(at, size, rights, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
}

}  // namespace

Device& device(int32_t id) {
  static auto* const all = new std::array<Device, kDevices>{Device(0), Device(1)};
  return (*all)[static_cast<size_t>(id)];
}

void report_errors_to(ErrorReport report) { error_report() = std::move(report); }

Stream::Stream(Device& device, bool is_default) : device_(device), is_default_(is_default) {
  thread_ = std::thread([this] { work(); });
}

Stream::~Stream() {
  {
    const std::lock_guard lock(device_.mutex_);
    ending_ = true;
    device_.streams_.erase(this);
  }
  device_.changed_.notify_all();
  thread_.join();
}

int32_t Stream::put(Command command) {
  {
    const std::lock_guard lock(device_.mutex_);
    if (device_.lost_) return OPMUX_DEVICE_LOST;
    if (capturing_) {
      graph_.push_back(std::move(command));
      return OPMUX_OK;
    }
    queue_.push_back(std::move(command));
  }
  device_.changed_.notify_all();
  return OPMUX_OK;
}

void Stream::work() {
  std::unique_lock lock(device_.mutex_);
  while (true) {
    device_.changed_.wait(lock, [&] {
      return (ending_ && queue_.empty()) || (!queue_.empty() && (!device_.held_ || device_.lost_));
    });
    if (queue_.empty()) return;
    const Command command = std::move(queue_.front());
    queue_.pop_front();
    if (device_.lost_) {
      note(OPMUX_DEVICE_LOST);
      device_.changed_.notify_all();
      continue;
    }
    busy_ = true;
    int32_t error = command.name.empty() ? 0 : std::exchange(device_.fail_next_, 0);
    lock.unlock();
    if (error == 0) error = command.work();
    if (error != 0 && error_report())
      error_report()(device_.id(), is_default_ ? nullptr : this, error);
    lock.lock();
    if (error != 0) note(OPMUX_FAILED);
    if (error == 0 && !command.name.empty()) device_.ran_.push_back(command.name);
    clock_ns_ += command.duration_ns;
    busy_ = false;
    device_.changed_.notify_all();
  }
}

int32_t Stream::synchronize() {
  std::unique_lock lock(device_.mutex_);
  if (capturing_) {
    capture_valid_ = false;
    return OPMUX_FAILED;
  }
  device_.changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  if (device_.lost_) return OPMUX_DEVICE_LOST;
  return std::exchange(first_bad_, OPMUX_OK);
}

void Stream::wait() {
  std::unique_lock lock(device_.mutex_);
  device_.changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

void Stream::begin_capture() {
  const std::lock_guard lock(device_.mutex_);
  capturing_ = capture_valid_ = true;
  graph_.clear();
}

int32_t Stream::end_capture(Graph& graph) {
  const std::lock_guard lock(device_.mutex_);
  capturing_ = false;
  graph = std::exchange(graph_, {});
  return capture_valid_ ? 0 : kCaptureInvalidated;
}

int32_t Stream::launch(const Graph& graph) {
  int32_t outcome = OPMUX_OK;
  for (const Command& command : graph) {
    if (outcome == OPMUX_OK) outcome = put(command);
  }
  return outcome;
}

bool Device::capturing() {
  return std::ranges::any_of(streams_, [](const Stream* each) { return each->capturing_; });
}

int32_t Device::allocate(uint64_t size, void** memory) {
  const uint64_t wanted = pages(size);
  if (allocated() + wanted > kCapacity) return OPMUX_RESOURCE;
  const std::lock_guard lock(mutex_);
  if (lost_) return OPMUX_DEVICE_LOST;
  if (capturing()) return OPMUX_FAILED;  // a graph cannot contain an allocation
  const int file = memfd_create("protected_device", MFD_CLOEXEC);
  char* const address = reserve(wanted);
  char* const alias = reserve(wanted);
  const bool mapped = file >= 0 && ftruncate(file, static_cast<off_t>(wanted)) == 0 &&
                      address != nullptr && alias != nullptr &&
                      map_over(address, wanted, PROT_NONE, file) &&
                      map_over(alias, wanted, PROT_READ | PROT_WRITE, file);
  if (file >= 0) close(file);
  if (!mapped) return OPMUX_RESOURCE;
  blocks_[address] = {wanted, alias};
  *memory = address;
  return OPMUX_OK;
}

void Device::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(static_cast<const char*>(memory));
  if (at == blocks_.end()) return;
  munmap(at->second.alias, at->second.size + kPage);
  munmap(memory, at->second.size + kPage);
  blocks_.erase(at);
}

/// The lock is held.
void Device::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] {
    const auto idle = [](const Stream* each) { return each->queue_.empty() && !each->busy_; };
    return std::ranges::all_of(streams_, idle) &&
           (default_stream_ == nullptr || idle(default_stream_.get()));
  });
}

void Device::free_when_idle(void* memory) {
  {
    std::unique_lock lock(mutex_);
    wait_until_idle(lock);
  }
  free(memory);
}

uint64_t Device::allocated() {
  const std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [address, block] : blocks_) sum += block.size;
  return sum;
}

char* Device::open(const void* address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto* const wanted = static_cast<const char*>(address);
  auto at = blocks_.upper_bound(wanted);
  if (at == blocks_.begin()) return nullptr;
  --at;
  const auto offset = static_cast<uint64_t>(wanted - at->first);
  if (offset > at->second.size || size > at->second.size - offset) return nullptr;
  return at->second.alias + offset;
}

Stream& Device::stream(void* handle) {
  if (handle != nullptr) return *static_cast<Stream*>(handle);
  const std::lock_guard lock(mutex_);
  if (default_stream_ == nullptr) default_stream_ = std::make_unique<Stream>(*this, true);
  return *default_stream_;
}

Stream* Device::create_stream() {
  const std::lock_guard lock(mutex_);
  return *streams_.insert(new Stream(*this, false)).first;
}

int32_t Device::copy(void* to, const void* from, uint64_t size, bool inwards, bool outwards,
                     void* handle) {
  return stream(handle).put({"", [=, this]() -> int32_t {
                               char* const into = inwards ? open(to, size) : static_cast<char*>(to);
                               const char* const out_of =
                                   outwards ? open(from, size) : static_cast<const char*>(from);
                               if (into == nullptr || out_of == nullptr) return kIllegalAddress;
                               std::memcpy(into, out_of, size);
                               return 0;
                             }});
}

int32_t Device::launch(const std::string& kernel, void* handle, std::function<int32_t()> work,
                       uint64_t duration_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (refused_.contains(kernel)) return OPMUX_FAILED;
  }
  return stream(handle).put({kernel, std::move(work), duration_ns});
}

void Device::reset() {
  std::unique_lock lock(mutex_);
  held_ = false;
  changed_.notify_all();
  wait_until_idle(lock);
  lost_ = false;
  fail_next_ = 0;
  refused_.clear();
  ran_.clear();
  if (default_stream_ != nullptr) default_stream_->first_bad_ = OPMUX_OK;
}

void Device::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void Device::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void Device::fail_next(int32_t code) {
  const std::lock_guard lock(mutex_);
  fail_next_ = code;
}

void Device::refuse(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  refused_.insert(kernel);
}

void Device::lose() {
  const std::lock_guard lock(mutex_);
  lost_ = true;
  changed_.notify_all();
}

bool Device::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::vector<std::string> Device::ran() {
  const std::lock_guard lock(mutex_);
  return ran_;
}

std::vector<float> Device::peek(const void* address, size_t count) {
  std::vector<float> values(count);
  const char* const from = open(address, count * sizeof(float));
  if (from != nullptr) std::memcpy(values.data(), from, count * sizeof(float));
  return values;
}

}  // namespace protected_device
