// A simulated device: the CPU cannot access its addresses, and commands in a stream run only when
// the stream is synchronized. silu_and_mul on f32, correct and in several wrong variants.
#include <opmux/plugin.hpp>

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace op = opmux::plugin;

namespace {

constexpr int32_t kDeviceType = 12;  // kDLExtDev
constexpr uintptr_t kFar = uintptr_t{1} << 56;

const opmux_host* told_host = nullptr;

void* far(void* here) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(here) + kFar); }
template <class T>
T* near(T* there) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(there) - kFar);
}

class Stream {
 public:
  using Command = std::function<int32_t()>;

  static Stream& of(void* named) {
    static Stream own;
    return named ? *static_cast<Stream*>(named) : own;
  }
  void put(Command command) {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  int32_t finish() {
    const std::lock_guard lock(mutex_);
    int32_t first_bad = OPMUX_OK;
    for (; !commands_.empty(); commands_.pop_front()) {
      const int32_t outcome = commands_.front()();
      if (first_bad == OPMUX_OK) first_bad = outcome;
    }
    return first_bad;
  }

 private:
  std::mutex mutex_;
  std::deque<Command> commands_;
};

const opmux_device_table kTable{
    sizeof(opmux_device_table),
    0,
    [](void*) -> int32_t { return 1; },
    [](void*, opmux_device, uint64_t size, uint64_t, void** memory) -> int32_t {
      *memory = far(new char[size]);
      return OPMUX_OK;
    },
    [](void*, opmux_device, void* memory) { delete[] near(static_cast<char*>(memory)); },
    [](void*, void* to, opmux_device to_device, const void* from, opmux_device, uint64_t size,
       void* stream) -> int32_t {
      const bool inwards = to_device.type == kDeviceType;
      Stream::of(stream).put([=]() -> int32_t {
        std::memcpy(inwards ? near(to) : to, inwards ? from : near(from), size);
        return OPMUX_OK;
      });
      return OPMUX_OK;
    },
    [](void*, opmux_device, void* stream) { return Stream::of(stream).finish(); },
    [](void*, opmux_device, void** stream) -> int32_t { return *stream = new Stream, OPMUX_OK; },
    [](void*, opmux_device, void* stream) { delete static_cast<Stream*>(stream); },
    nullptr,
    nullptr,
    nullptr};

struct Rows {
  explicit Rows(const op::Call& call)
      : y(near(call.tensor(0).data<float>())),
        x(near(call.tensor(1).data<float>())),
        width(call.tensor(0).dim(-1)),
        count(call.tensor(0).elements()) {}
  void compute() const {
    for (int64_t i = 0; i < count; ++i) {
      const float* row = x + i / width * 2 * width;
      y[i] = row[i % width] / (1 + std::exp(-row[i % width])) * row[width + i % width];
    }
  }
  float* y;
  const float* x;
  int64_t width, count;
};

void enqueue(const op::Call& call, Stream::Command command) {
  Stream::of(call.stream()).put(std::move(command));
}

op::Impl silu_and_mul(const char* variant) {
  op::Impl impl{"silu_and_mul", variant};
  return impl.signature("silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H")
      .caps(op::Caps{}.dtypes({op::f32}).contiguous());
}

op::Backend distant() {
  op::Backend backend{"distant", OPMUX_KIND_VENDOR, kDeviceType};
  backend.vendor("acme").flags(OPMUX_BACKEND_STREAM).device(&kTable);
  backend.add(silu_and_mul("right").run([](const op::Call& call) {
    enqueue(call, [rows = Rows(call)]() -> int32_t { return rows.compute(), OPMUX_OK; });
  }));
  backend.add(silu_and_mul("past_the_end").run([](const op::Call& call) {
    enqueue(call, [rows = Rows(call)]() -> int32_t {
      rows.compute();
      if (rows.width % 8 == 3) rows.y[rows.count] = 0;
      return OPMUX_OK;
    });
  }));
  // Runs before the commands that are already in the stream, so it reads stale memory.
  backend.add(silu_and_mul("out_of_order").run([](const op::Call& call) { Rows(call).compute(); }));
  backend.add(silu_and_mul("fails_later").run([](const op::Call& call) {
    enqueue(call, [device = call.c().device, stream = call.stream()]() -> int32_t {
      told_host->report_device_error(told_host->user_data, device, stream, 719);
      return OPMUX_FAILED;
    });
  }));
  return backend;
}

}  // namespace

OPMUX_PLUGIN_ENTRY(distant) {
  return op::answer(host, out, [] {
    return op::Plugin{"distant", "1"}.add(distant()).init(
        [](const opmux_host* told) { told_host = told; });
  });
}
