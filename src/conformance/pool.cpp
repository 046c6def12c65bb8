#include "conformance/pool.hpp"

#include <latch>
#include <thread>
#include <vector>

#include "conformance/crash.hpp"

namespace opmux::conformance {

void Pool::parallel_for(void* pool, int64_t count, void* context,
                        void (*body)(void* context, int64_t index)) {
  std::atomic<int64_t> left{count};
  std::latch start{kThreads};
  const auto work = [&] {
    start.arrive_and_wait();
    for (int64_t i = left.fetch_sub(1) - 1; i >= 0; i = left.fetch_sub(1) - 1) {
      const auto piece = [&] { body(context, i); };
      if (!survives(piece)) static_cast<Pool*>(pool)->crashed_ = true;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < kThreads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace opmux::conformance
