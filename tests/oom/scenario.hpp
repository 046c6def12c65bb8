#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

#include <opmux/opmux.h>
#include <opmux/opmux.hpp>

/// The calls whose allocations fail one after the other; see oom_test.cpp.
namespace opmux::test {

/// A tensor of floats with its memory.
template <size_t kRows, size_t kColumns>
struct Matrix {
  std::array<float, kRows * kColumns> data{};
  std::array<int64_t, 2> shape{kRows, kColumns};
  opmux_tensor tensor{
      data.data(), {OPMUX_DEVICE_CPU, 0}, 2, {OPMUX_DTYPE_FLOAT, 32, 1}, shape.data(), nullptr, 0};

  Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  opmux_arg arg() const { return opmux_arg_tensor(&tensor); }
};

/// y and x of silu_and_mul, with the expected values of y.
template <size_t kRows>
struct SiluCall {
  Matrix<kRows, 4> y;
  Matrix<kRows, 8> x;
  std::array<opmux_arg, 2> args{y.arg(), x.arg()};

  SiluCall();
  /// Overwrites y, so that a call that computes nothing is noticed.
  void clear() { y.data.fill(99); }
  bool right() const;
};

/// The runtime and tensors that a scenario works on. Made before an allocation fails, so that only
/// the allocations of the scenario itself are counted.
struct World {
  explicit World(const std::string& folder_for_files);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Creates `runtime`: only the reference, no threads, an empty environment, all events delivered.
  void start();
  void destroy_runtime();

  std::string folder;  ///< holds policy.yaml; the runtimes of some scenarios write to it
  std::string config, state, record, plugins;
  opmux_runtime* runtime = nullptr;
  opmux_operator* op = nullptr;  ///< silu_and_mul
  opmux_operator* linear = nullptr;
  opmux_plan* plan = nullptr;
  opmux_registration* registration = nullptr;
  opmux_constant* constant = nullptr;
  SiluCall<1> call;
  SiluCall<3> other_call;  ///< other shapes than `call`
  Matrix<2, 4> linear_x, weight;
  Matrix<2, 2> linear_y;
  std::string runs = "silu_and_mul/reference.scalar";  ///< the implementation that must run
  std::array<char, 1 << 18> text{};
  size_t size = 0;
  uint64_t now_ns = 1;
  uint64_t events = 0;
  std::string lockfile;
  std::unique_ptr<Policy> policy;  ///< arguments of the scenarios in C++
  std::unique_ptr<Implementation> own;
  std::unique_ptr<Registration> own_registration;
  std::unique_ptr<Runtime> cpp;
  std::unique_ptr<Operator> cpp_op;
  std::unique_ptr<Scope> scope;
};

/// One call of the API, or a few that belong together.
struct Scenario {
  const char* name;
  /// Prepares the world after World::start(); null: nothing. The allocations do not fail.
  void (*prepare)(World& world);
  /// The call. Returns an error number as the functions of the C API do.
  int32_t (*run)(World& world, opmux_error* error);
  /// The result without a failed allocation.
  int32_t expected = OPMUX_OK;
  /// The runtime is created by `run`.
  bool creates = false;
  /// Blocks that the library keeps until the process ends for each attempt to create a runtime.
  int64_t kept = 0;
  /// The full form fails every allocation whose number has this step. More than 1 where almost all
  /// allocations are those of another scenario.
  uint64_t step = 1;
};

std::span<const Scenario> c_scenarios();
std::span<const Scenario> policy_scenarios();
std::span<const Scenario> cpp_scenarios();

/// Whether the runtime of the world computes the right numbers with the expected implementation,
/// by the slow path and by the fast one.
bool usable(World& world);

/// Ends the process with a message if a step that prepares a scenario fails.
void require(bool condition, const char* what);

}  // namespace opmux::test
