// The backend `protected`: kernels for the devices of protected_device.hpp. A tensor's data pointer
// is an address that the CPU must not touch; kernels open it inside commands of a stream.
#include <opmux/plugin.hpp>

#include <cmath>

#include "protected_device.hpp"

namespace op = opmux::plugin;

namespace protected_device {
namespace {

constexpr const char* kScale =
    "protected.scale(out Tensor y[..., H], Tensor x[..., H], float by = 2.0)";
constexpr const char* kWeigh =
    "protected.weigh(out Tensor y[..., H], Tensor x[..., H], const Tensor weight[H])";
constexpr const char* kRamp = "protected.ramp(out Tensor y[..., H], Tensor x[..., H])";
constexpr const char* kSilu =
    "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H";

Device& device_of(const op::Call& call) { return device(call.c().device.id); }

/// Elements of a tensor on a device, as a command captures them: kernels open them when they run.
struct Elements {
  Device* device;
  void* address;
  int64_t count, width;

  explicit Elements(const op::Call& call, uint32_t argument) : device(&device_of(call)) {
    const op::TensorArg tensor = call.tensor(argument);
    address = tensor.data();
    count = tensor.elements();
    width = tensor.dim(-1);
  }
  float* open() const {
    return reinterpret_cast<float*>(
        device->open(address, static_cast<uint64_t>(count) * sizeof(float)));
  }
};

/// Memory of a device that belongs to a prepared state or a packed constant.
struct OwnMemory {
  Device* device = nullptr;
  void* address = nullptr;
  int64_t count = 0;

  void allocate(Device& on, int64_t elements) {
    device = &on;
    count = elements;
    if (on.allocate(static_cast<uint64_t>(elements) * sizeof(float), &address) != OPMUX_OK)
      throw std::bad_alloc();
  }
  float* open() const {
    return reinterpret_cast<float*>(
        device->open(address, static_cast<uint64_t>(count) * sizeof(float)));
  }
  ~OwnMemory() {
    if (device != nullptr) device->free_when_idle(address);
  }
};

/// Launches a kernel that computes y[i] = value(x[i], position in the row).
template <class Value>
int32_t launch(const op::Call& call, const std::string& kernel, Value value) {
  const Elements y(call, 0), x(call, 1);
  return device_of(call).launch(kernel, call.stream(), [=]() -> int32_t {
    float* const into = y.open();
    const float* const from = x.open();
    if (into == nullptr || from == nullptr) return kIllegalAddress;
    for (int64_t i = 0; i < y.count; ++i) into[i] = value(from[i], i % y.width);
    return 0;
  });
}

op::Impl scale(const char* variant, int32_t priority, const char* lowest, const char* highest) {
  op::Impl impl{"protected.scale", variant};
  return impl.signature(kScale).priority(priority).caps(
      op::Caps{}.dtypes({op::f32}).contiguous().arch(lowest, highest));
}

int32_t run_scale(const op::Call& call, const std::string& kernel) {
  return launch(call, kernel,
                [by = static_cast<float>(call.f64(2))](float x, int64_t) { return by * x; });
}

/// For old devices. It waits for its stream, which a graph cannot contain.
op::Impl old_scale() {
  return scale("old", 300, "", "8.9").run([](const op::Call& call) -> int32_t {
    const int32_t outcome = device_of(call).stream(call.stream()).synchronize();
    return outcome == OPMUX_OK ? run_scale(call, "old") : outcome;
  });
}

op::Impl new_scale() {
  return scale("new", 200, "9.0", "").flags(OPMUX_IMPL_CAPTURE_SAFE).run([](const op::Call& call) {
    return run_scale(call, "new");
  });
}

op::Impl any_scale() {
  return scale("any", 100, "", "").flags(OPMUX_IMPL_CAPTURE_SAFE).run([](const op::Call& call) {
    return run_scale(call, "any");
  });
}

/// Keeps a copy of the weight in memory of the device.
op::Impl weigh() {
  return op::Impl{"protected.weigh", "packed"}
      .signature(kWeigh)
      .flags(OPMUX_IMPL_CAPTURE_SAFE)
      .caps(op::Caps{}.dtypes({op::f32}).contiguous())
      .stateful([](op::Impl::Args) { return std::make_shared<OwnMemory>(); },
                [](void* instance, op::Impl::Args params) -> int32_t {
                  auto& packed = *static_cast<OwnMemory*>(instance);
                  const op::TensorArg weight{params[2].value.tensor};
                  Device& on = device(weight.c().device.id);
                  packed.allocate(on, weight.elements());
                  on.copy(packed.address, weight.data(),
                          static_cast<uint64_t>(packed.count) * sizeof(float), true, true, nullptr);
                  return on.stream(nullptr).synchronize();
                })
      .packed_bytes([](void* instance) {
        return static_cast<uint64_t>(static_cast<OwnMemory*>(instance)->count) * sizeof(float);
      })
      .run([](const op::Call& call) -> int32_t {
        if (const auto* const packed = call.instance<OwnMemory>()) {
          return launch(call, "packed",
                        [packed](float x, int64_t i) { return x * packed->open()[i]; });
        }
        const Elements weight(call, 2);
        return launch(call, "plain", [weight](float x, int64_t i) { return x * weight.open()[i]; });
      });
}

/// Adds 0, 1, 2 ... to each row. The numbers are prepared in memory of the device.
op::Impl ramp() {
  return op::Impl{"protected.ramp", "prepared"}
      .signature(kRamp)
      .flags(OPMUX_IMPL_CAPTURE_SAFE)
      .caps(op::Caps{}.dtypes({op::f32}).contiguous())
      .plan(
          [](const op::Call& call) -> std::shared_ptr<void> {
            auto made = std::make_shared<OwnMemory>();
            made->allocate(device_of(call), call.tensor(0).dim(-1));
            device_of(call).stream(nullptr).put({"", [made]() -> int32_t {
                                                   float* const numbers = made->open();
                                                   for (int64_t i = 0; i < made->count; ++i)
                                                     numbers[i] = static_cast<float>(i);
                                                   return 0;
                                                 }});
            device_of(call).stream(nullptr).synchronize();
            return made;
          },
          {{OPMUX_FACT_DIM, "H"}, {OPMUX_FACT_DEVICE, "y"}})
      .run([](const op::Call& call) {
        const auto* const numbers = call.prepared<OwnMemory>();
        return launch(call, "ramp",
                      [numbers](float x, int64_t i) { return x + numbers->open()[i]; });
      });
}

op::Impl silu_and_mul() {
  return op::Impl{"silu_and_mul", "kernel"}
      .signature(kSilu)
      .flags(OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_CAPTURE_SAFE)
      .caps(op::Caps{}.dtypes({op::f32}).contiguous())
      .run([](const op::Call& call) {
        const Elements y(call, 0), x(call, 1);
        return device_of(call).launch("silu_and_mul", call.stream(), [=]() -> int32_t {
          float* const into = y.open();
          const float* const from = x.open();
          if (into == nullptr || from == nullptr) return kIllegalAddress;
          for (int64_t i = 0; i < y.count; ++i) {
            const float* const row = from + i / y.width * 2 * y.width;
            const float gate = row[i % y.width];
            into[i] = gate / (1 + std::exp(-gate)) * row[y.width + i % y.width];
          }
          return 0;
        });
      });
}

struct Event {
  Stream* stream;
  uint64_t at = 0;
};

const opmux_device_table kTable{
    .struct_size = sizeof(opmux_device_table),
    .reserved = 0,
    .count = [](void*) -> int32_t { return kDevices; },
    .alloc = [](void*, opmux_device on, uint64_t size, uint64_t, void** memory) -> int32_t {
      return device(on.id).allocate(size, memory);
    },
    .free = [](void*, opmux_device on, void* memory) { device(on.id).free_when_idle(memory); },
    .copy = [](void*, void* to, opmux_device to_device, const void* from, opmux_device from_device,
               uint64_t size, void* stream) -> int32_t {
      const bool inwards = to_device.type == kDeviceType;
      return device((inwards ? to_device : from_device).id)
          .copy(to, from, size, inwards, from_device.type == kDeviceType, stream);
    },
    .synchronize = [](void*, opmux_device on, void* stream) -> int32_t {
      return device(on.id).stream(stream).synchronize();
    },
    .stream_create = [](void*, opmux_device on, void** stream) -> int32_t {
      *stream = device(on.id).create_stream();
      return OPMUX_OK;
    },
    .stream_destroy = [](void*, opmux_device,
                         void* stream) { delete static_cast<Stream*>(stream); },
    .event_record = [](void*, opmux_device on, void* stream, void** event) -> int32_t {
      auto* const made = new Event{&device(on.id).stream(stream)};
      *event = made;
      return made->stream->put({"", [made]() -> int32_t {
                                  made->at = made->stream->clock_ns();
                                  return 0;
                                }});
    },
    .event_elapsed_ns = [](void*, void* start, void* stop, uint64_t* nanoseconds) -> int32_t {
      const auto *const from = static_cast<Event*>(start), *const to = static_cast<Event*>(stop);
      to->stream->wait();
      *nanoseconds = to->at - from->at;
      return OPMUX_OK;
    },
    .event_destroy = [](void*, void* event) { delete static_cast<Event*>(event); }};

op::Backend backend() {
  op::Backend made{"protected", OPMUX_KIND_VENDOR, kDeviceType};
  made.vendor("acme")
      .flags(OPMUX_BACKEND_STREAM | OPMUX_BACKEND_FORK_LOST)
      .device(&kTable)
      .architecture([](int32_t id) -> std::string_view {
        return id < kDevices ? device(id).architecture() : "";
      });
  for (const op::Impl& each :
       {old_scale(), new_scale(), any_scale(), weigh(), ramp(), silu_and_mul()}) {
    made.add(each);
  }
  return made;
}

}  // namespace
}  // namespace protected_device

OPMUX_PLUGIN_ENTRY(protected_device) {
  return op::answer(host, out, [] {
    return op::Plugin{"protected", "1"}
        .schema(protected_device::kScale)
        .schema(protected_device::kWeigh)
        .schema(protected_device::kRamp)
        .add(protected_device::backend())
        .point("protected.driver(Device) -> int", "protected",
               [](op::Impl::Args) -> std::optional<opmux_arg> {
                 opmux_arg answer{};
                 answer.tag = OPMUX_ARG_I64;
                 answer.value.i64 = reinterpret_cast<int64_t>(&protected_device::driver());
                 return answer;
               })
        .init([](const opmux_host* told) {
          protected_device::report_errors_to([told](int32_t device, void* stream, int32_t code) {
            told->report_device_error(told->user_data, {protected_device::kDeviceType, device},
                                      stream, code);
          });
        });
  });
}
