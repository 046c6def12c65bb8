#include <opmux/opmux.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "conformance/placed.hpp"
#include "conformance/shaper.hpp"

// The library allocates workspaces as arrays of bytes with std::nothrow. These functions override
// those of the C++ library for every library in the process and count the bytes in use.
namespace {

constexpr size_t kHead = 64;  ///< keeps the alignment of malloc
std::atomic<uint64_t> live_bytes{0};

void* take_array(size_t size, bool counted) {
  auto* const head = static_cast<uint64_t*>(std::malloc(size + kHead));
  if (head == nullptr) return nullptr;
  *head = counted ? size : 0;
  live_bytes += *head;
  return reinterpret_cast<char*>(head) + kHead;
}

void give_array(void* memory) {
  if (memory == nullptr) return;
  auto* const head = reinterpret_cast<uint64_t*>(static_cast<char*>(memory) - kHead);
  live_bytes -= *head;
  std::free(head);
}

}  // namespace

void* operator new[](size_t size) {
  void* const memory = take_array(size, false);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return take_array(size, true); }
void operator delete[](void* memory) noexcept { give_array(memory); }
void operator delete[](void* memory, size_t) noexcept { give_array(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { give_array(memory); }

namespace opmux::conformance {
namespace {

constexpr uint64_t kCases = 60;

/// Calls an implementation with drawn cases and measures the workspace that the thread keeps.
class WorkspaceMeter {
 public:
  WorkspaceMeter(Runtime& runtime, const Operator& op, std::string id)
      : runtime_(&runtime), op_(op), id_(std::move(id)) {}

  /// A case and the bytes that a thread keeps after it has run only this case.
  struct Measured {
    const Case* c;
    uint64_t bytes;
  };

  /// The cases that the implementation runs with a workspace.
  std::vector<Measured> measure(const std::vector<Case>& cases) {
    std::vector<Measured> kept;
    for (const Case& c : cases) {
      on_a_new_thread([&] {
        if (const auto bytes = call(c); bytes && *bytes != 0) kept.push_back({&c, *bytes});
      });
    }
    return kept;
  }

  /// Runs the cases in this order on one thread. After each one the thread keeps at least the bytes
  /// of the last case, and at most twice those of the largest one so far.
  void run_in_order(const std::vector<Measured>& cases, const std::string& order) {
    on_a_new_thread([&] {
      uint64_t largest = 0;
      for (const Measured& next : cases) {
        largest = std::max(largest, next.bytes);
        const auto bytes = call(*next.c);
        ASSERT_TRUE(bytes) << id_ << " ran before and refuses " << next.c->text();
        EXPECT_GE(*bytes, next.bytes) << id_ << ", " << order;
        EXPECT_LE(*bytes, 2 * largest) << id_ << ", " << order << ", " << next.c->text();
      }
    });
  }

 private:
  template <class Body>
  static void on_a_new_thread(Body&& body) {
    std::thread(std::forward<Body>(body)).join();
  }

  /// Calls three times: on the slow path, which reports the implementation, and with the plan that
  /// the second call leaves. Returns the bytes that are in use more than before this thread's first
  /// call; nullopt if the implementation refuses the case.
  std::optional<uint64_t> call(const Case& c) {
    thread_local const uint64_t before = live_bytes;
    thread_local Arenas arenas;
    Policy only;
    only.require = {"impl:" + id_};
    const PolicyScope scope(*runtime_, only);
    const Placed placed(arenas, c, std::byte{0});
    CallReport report;
    if (!op_.call_arguments(placed.arguments(), {}, &report).ok()) return std::nullopt;
    EXPECT_EQ(report.implementation, id_);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(op_.call_arguments(placed.arguments()).ok()) << id_;
    return live_bytes - before;
  }

  Runtime* runtime_;
  Operator op_;
  std::string id_;
};

std::vector<Case> draw_cases(const std::string& name, const std::vector<ArgumentInfo>& infos) {
  std::vector<Case> cases;
  const Shaper& shaper = find_shaper(name);
  for (uint64_t number = 0; cases.size() < kCases && number < 10 * kCases; ++number) {
    Case c = draw_case(shaper, name, infos, 5, number);
    if (!c.invalid && !c.empty()) cases.push_back(std::move(c));
  }
  return cases;
}

TEST(WorkspaceMemory, is_at_most_twice_the_largest_request_of_every_implementation) {
  Options options;
  options.sources.own_thread = false;
  Runtime runtime = Runtime::create(options).value();
  runtime.plugins().warm_up();
  int with_workspace = 0;
  for (const OperatorInfo& info : runtime.list()) {
    const Operator op = runtime.op(info.name).value();
    const std::vector<ArgumentInfo> infos = op.arguments();
    const std::vector<Case> cases = draw_cases(info.name, infos);
    for (const ImplementationInfo& implementation : info.implementations) {
      if (!implementation.available || implementation.own_memory) continue;
      WorkspaceMeter meter(runtime, op, implementation.id);
      std::vector<WorkspaceMeter::Measured> measured = meter.measure(cases);
      if (measured.empty()) continue;
      ++with_workspace;
      std::cout << implementation.id << ": " << measured.size() << " cases\n";
      const auto smaller = [](const auto& a, const auto& b) { return a.bytes < b.bytes; };
      std::stable_sort(measured.begin(), measured.end(), smaller);
      meter.run_in_order(measured, "growing");
      std::reverse(measured.begin(), measured.end());
      meter.run_in_order(measured, "falling");
      std::shuffle(measured.begin(), measured.end(), std::minstd_rand(7));
      meter.run_in_order(measured, "random");
    }
  }
  EXPECT_GT(with_workspace, 0);
}

}  // namespace
}  // namespace opmux::conformance
