// The driver as C functions; see Driver in protected_device.hpp.
#include <cstring>

#include "protected_device.hpp"

namespace protected_device {

const Driver& driver() {
  static const Driver functions{
      .allocate = [](int32_t on, uint64_t size,
                     void** memory) { return device(on).allocate(size, memory); },
      .free =
          [](int32_t on, void* memory, void* stream) {
            const auto release = [=]() -> int32_t { return device(on).free(memory), 0; };
            if (device(on).stream(stream).put({"", release}) != OPMUX_OK) release();
          },
      .copy =
          [](int32_t on, void* to, const void* from, uint64_t size, int32_t inwards,
             int32_t outwards, void* stream) {
            return device(on).copy(to, from, size, inwards != 0, outwards != 0, stream);
          },
      .synchronize = [](int32_t on,
                        void* stream) { return device(on).stream(stream).synchronize(); },
      .create_stream = [](int32_t on) -> void* { return device(on).create_stream(); },
      .scale =
          [](int32_t on, void* to, const void* from, int64_t count, float by, void* stream) {
            return device(on).launch("python", stream, [=]() -> int32_t {
              const auto bytes = static_cast<uint64_t>(count) * sizeof(float);
              auto* const into = reinterpret_cast<float*>(device(on).open(to, bytes));
              const auto* const out_of =
                  reinterpret_cast<const float*>(device(on).open(from, bytes));
              if (into == nullptr || out_of == nullptr) return kIllegalAddress;
              for (int64_t i = 0; i < count; ++i) into[i] = by * out_of[i];
              return 0;
            });
          },
      .reset = [](int32_t on) { device(on).reset(); },
      .hold = [](int32_t on) { device(on).hold(); },
      .release = [](int32_t on) { device(on).release(); },
      .fail_next = [](int32_t on, int32_t code) { device(on).fail_next(code); },
      .refuse = [](int32_t on, const char* kernel) { device(on).refuse(kernel); },
      .lose = [](int32_t on) { device(on).lose(); },
      .ran =
          [](int32_t on, char* text, uint64_t size) {
            std::string names;
            for (const std::string& each : device(on).ran())
              names += (names.empty() ? "" : " ") + each;
            std::strncpy(text, names.c_str(), size - 1);
          }};
  return functions;
}

}  // namespace protected_device
