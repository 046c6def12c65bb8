#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "scenario.hpp"

namespace opmux::test {

template <size_t kRows>
SiluCall<kRows>::SiluCall() {
  for (size_t i = 0; i < x.data.size(); ++i) x.data[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
}

template <size_t kRows>
bool SiluCall<kRows>::right() const {
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t i = 0; i < 4; ++i) {
      const float gate = x.data[row * 8 + i], value = x.data[row * 8 + 4 + i];
      const float expected = gate / (1 + std::exp(-gate)) * value;
      if (std::fabs(y.data[row * 4 + i] - expected) > 1e-5f) return false;
    }
  }
  return true;
}

template struct SiluCall<1>;
template struct SiluCall<3>;

void require(bool condition, const char* what) {
  if (condition) return;
  dprintf(STDERR_FILENO, "a scenario cannot be prepared: %s\n", what);
  _exit(99);
}

World::World(const std::string& folder_for_files)
    : folder(folder_for_files),
      config(folder + "/policy.yaml"),
      state(folder + "/state"),
      record(folder + "/record"),
      plugins(folder + "/plugins") {
  weight.data = {1, 0, 0, 0, 0, 1, 0, 0};
  linear_x.data = {1, 2, 3, 4, 5, 6, 7, 8};
}

World::~World() { destroy_runtime(); }

void World::start() {
  opmux_source_options sources{};
  sources.struct_size = sizeof sources;
  sources.flags = OPMUX_SOURCE_NO_THREAD;
  opmux_options options{};
  options.struct_size = sizeof options;
  options.flags = OPMUX_OPTION_NO_BACKENDS;
  const opmux_variable none{};
  options.environment = &none;
  options.sources = &sources;
  options.on_event = [](void* count, const opmux_event*) { ++*static_cast<uint64_t*>(count); };
  options.event_context = &events;
  require(opmux_runtime_create(&options, &runtime, nullptr) == OPMUX_OK, "opmux_runtime_create");
  require(opmux_operator_get(runtime, opmux_str_of("silu_and_mul"), &op, nullptr) == OPMUX_OK,
          "opmux_operator_get");
  require(opmux_operator_get(runtime, opmux_str_of("linear"), &linear, nullptr) == OPMUX_OK,
          "opmux_operator_get");
}

void World::destroy_runtime() {
  opmux_plan_destroy(std::exchange(plan, nullptr));
  opmux_constant_destroy(std::exchange(constant, nullptr));
  if (registration != nullptr) opmux_withdraw(std::exchange(registration, nullptr), nullptr);
  opmux_runtime_destroy(std::exchange(runtime, nullptr));
  own_registration = nullptr;
  scope = nullptr;
  cpp_op = nullptr;
  cpp = nullptr;
}

bool usable(World& world) {
  for (int repeat = 0; repeat < 2; ++repeat) {
    world.call.clear();
    const int32_t outcome = opmux_call_operator(world.op, world.call.args.data(), 2, nullptr);
    if (outcome != OPMUX_OK || !world.call.right()) return false;
    world.other_call.clear();
    opmux_report report{};
    report.struct_size = sizeof report;
    if (opmux_call_operator_with(world.op, world.other_call.args.data(), 2, nullptr, &report,
                                 nullptr) != OPMUX_OK ||
        !world.other_call.right() || world.runs != report.implementation) {
      return false;
    }
  }
  return true;
}

}  // namespace opmux::test
