#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <opmux/abi.h>

/// A driver of two simulated devices that behave like accelerators. Their memory is mapped twice:
/// the address that programs see has no access rights, so that the CPU faults if it touches it, and
/// kernels use a second address. A thread for each stream runs its commands, later than the calls
/// that enqueue them. Errors are found then. A stream can be captured into a graph, and a device
/// can be lost. Time advances only by the duration that a kernel states.
namespace protected_device {

inline constexpr int32_t kDeviceType = OPMUX_DEVICE_EXT_DEV;  // torch's PrivateUse1
inline constexpr int32_t kDevices = 2;

/// Numbers of the driver's errors.
inline constexpr int32_t kIllegalAddress = 700, kLaunchFailed = 719, kCaptureInvalidated = 901;

/// A piece of work of a stream. `work` returns 0 or an error number.
struct Command {
  std::string name;
  std::function<int32_t()> work;
  uint64_t duration_ns = 0;
};

/// Commands that a capture recorded.
using Graph = std::vector<Command>;

class Device;

/// A queue of commands and the thread that runs them. Thread-safe.
class Stream {
 public:
  /// Programs name the default stream by null, and others by their address.
  Stream(Device& device, bool is_default);
  /// Waits for the commands in the queue.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Adds a command, to the graph while the stream is captured. Returns an outcome.
  int32_t put(Command command);
  /// Waits until the queue is empty; returns the first outcome that was not ok since the last time.
  /// Fails while the stream is captured, and makes the capture invalid.
  int32_t synchronize();
  /// Waits until the queue is empty.
  void wait();

  void begin_capture();
  /// Ends the capture. Returns 0 or an error number.
  int32_t end_capture(Graph& graph);
  int32_t launch(const Graph& graph);

  /// Duration of all commands so far; for events, which are commands.
  uint64_t clock_ns() const { return clock_ns_; }

 private:
  friend class Device;
  void work();
  void note(int32_t outcome) {
    if (first_bad_ == OPMUX_OK) first_bad_ = outcome;
  }

  Device& device_;
  const bool is_default_;
  std::deque<Command> queue_;
  bool busy_ = false, ending_ = false, capturing_ = false, capture_valid_ = true;
  Graph graph_;
  int32_t first_bad_ = OPMUX_OK;
  uint64_t clock_ns_ = 0;
  std::thread thread_;
};

/// One device. Thread-safe.
class Device {
 public:
  explicit Device(int32_t id) : id_(id) {}

  int32_t id() const { return id_; }
  /// "8.6" for device 0, "9.0" for device 1.
  const char* architecture() const { return id_ == 0 ? "8.6" : "9.0"; }

  int32_t allocate(uint64_t size, void** memory);
  void free(void* memory);
  /// Waits for all streams, so that no kernel uses the memory, and frees it.
  void free_when_idle(void* memory);
  /// Bytes that are allocated now.
  uint64_t allocated();
  /// The address by which a kernel reaches `size` bytes of device memory; null if they are not in
  /// one block of this device. For commands of streams only.
  char* open(const void* address, uint64_t size);

  /// The stream that a program names.
  Stream& stream(void* handle);
  Stream* create_stream();
  /// Copies in the order of the stream; `inwards`: to the device.
  int32_t copy(void* to, const void* from, uint64_t size, bool inwards, bool outwards,
               void* stream);
  /// Adds a kernel to a stream. Returns device_lost, or failed if refuse() named it.
  int32_t launch(const std::string& kernel, void* stream, std::function<int32_t()> work,
                 uint64_t duration_ns = 1000);

  // For tests.

  /// Undoes loss, refusals and pending failures.
  void reset();
  /// No stream starts a command until release().
  void hold();
  void release();
  /// The next kernel fails with this error number when it runs.
  void fail_next(int32_t code);
  /// Launches of a kernel fail at once.
  void refuse(const std::string& kernel);
  void lose();
  bool lost();
  /// Names of the kernels that finished, in order.
  std::vector<std::string> ran();
  /// Reads device memory behind the back of all streams.
  std::vector<float> peek(const void* address, size_t count);

 private:
  friend class Stream;
  struct Block {
    uint64_t size;
    char* alias;
  };
  bool capturing();  // the lock is held
  void wait_until_idle(std::unique_lock<std::mutex>& lock);

  const int32_t id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const char*, Block> blocks_;
  std::set<Stream*> streams_;
  std::unique_ptr<Stream> default_stream_;
  std::vector<std::string> ran_;
  std::set<std::string> refused_;
  int32_t fail_next_ = 0;
  bool held_ = false, lost_ = false;
};

/// Device 0 or 1; lives until the process ends.
Device& device(int32_t id);

/// Receives errors that commands found, with the stream as programs name it.
using ErrorReport = std::function<void(int32_t device, void* stream, int32_t code)>;
void report_errors_to(ErrorReport report);

/// The driver as C functions, for the torch backend and tests in Python. They get its address as
/// the answer to the point `protected.driver`, because the plugin exports no symbols.
struct Driver {
  int32_t (*allocate)(int32_t device, uint64_t size, void** memory);
  /// Frees memory after the work that is on the stream now.
  void (*free)(int32_t device, void* memory, void* stream);
  int32_t (*copy)(int32_t device, void* to, const void* from, uint64_t size, int32_t inwards,
                  int32_t outwards, void* stream);
  int32_t (*synchronize)(int32_t device, void* stream);
  void* (*create_stream)(int32_t device);
  /// Launches the kernel `python`: to[i] = by * from[i].
  int32_t (*scale)(int32_t device, void* to, const void* from, int64_t count, float by,
                   void* stream);
  void (*reset)(int32_t device);
  void (*hold)(int32_t device);
  void (*release)(int32_t device);
  void (*fail_next)(int32_t device, int32_t code);
  void (*refuse)(int32_t device, const char* kernel);
  void (*lose)(int32_t device);
  /// Writes the names of the kernels that finished, separated by spaces.
  void (*ran)(int32_t device, char* text, uint64_t size);
};
const Driver& driver();

}  // namespace protected_device
