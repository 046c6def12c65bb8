#include "registry/backend.hpp"

#include <exception>
#include <new>
#include <utility>

#include "base/no_callback.hpp"
#include "base/system/process.hpp"

namespace opmux::registry {
namespace {

uint64_t hash_of(Device device, const void* stream) {
  uint64_t hash = reinterpret_cast<uintptr_t>(stream);
  for (const int32_t word : {device.type, device.id}) {
    hash = (hash ^ static_cast<uint32_t>(word)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

/// A word whose upper half identifies the stream and is never 0.
uint64_t mark_of(uint64_t hash) { return (hash | 1) << 32; }

}  // namespace

void StreamHistory::note(Device device, const void* stream, uint32_t implementation) noexcept {
  const uint64_t hash = hash_of(device, stream);
  Ring& ring = rings_[hash >> 32 & (kRings - 1)];
  const uint32_t place = ring.next.fetch_add(1, std::memory_order_relaxed);
  ring.words[place % kLength].store(mark_of(hash) | implementation, std::memory_order_relaxed);
}

std::vector<uint32_t> StreamHistory::latest(Device device, const void* stream) const {
  const uint64_t hash = hash_of(device, stream);
  const Ring& ring = rings_[hash >> 32 & (kRings - 1)];
  const uint32_t next = ring.next.load(std::memory_order_relaxed);
  std::vector<uint32_t> found;
  for (uint32_t age = 1; age <= kLength; ++age) {
    const uint64_t word = ring.words[(next - age) % kLength].load(std::memory_order_relaxed);
    if (word != 0 && (word & ~uint64_t{0xffffffff}) == mark_of(hash)) {
      found.push_back(static_cast<uint32_t>(word));
    }
  }
  return found;
}

Backend::Backend(BackendDraft draft) : draft_(std::move(draft)), enabled_(default_enable()) {
  if ((draft_.flags & OPMUX_BACKEND_STREAM) != 0) history_ = std::make_unique<StreamHistory>();
}

Backend::~Backend() {
  const Answer* answer = answer_.load(std::memory_order_acquire);
  while (answer != nullptr) delete std::exchange(answer, answer->previous);
}

int Backend::priority() const {
  return draft_.priority < 0 ? priority_of(draft_.kind) : draft_.priority;
}

std::string Backend::architecture(int32_t device) const {
  if (!draft_.architecture) return {};
  const auto known = architectures_.with([&](const auto& all) -> std::optional<std::string> {
    const auto at = all.find(device);
    return at == all.end() ? std::nullopt : std::optional(at->second);
  });
  if (known) return *known;
  mark_used();
  // Without the lock, because the function is the backend's. Two threads may both ask.
  std::string asked = draft_.architecture(device);
  architectures_.with([&](auto& all) { all.insert_or_assign(device, asked); });
  return asked;
}

bool Backend::available() const {
  if (quarantined_.load(std::memory_order_acquire) != nullptr) return false;
  // A probe that asks would wait for the answer that it has not given yet.
  if (base::NoCallbackGuard::active() != nullptr && !answered(base::process_number())) return false;
  return answer().available;
}

std::string Backend::unavailable_reason() const {
  if (const std::string* const why = quarantined_.load(std::memory_order_acquire)) return *why;
  return answered(base::process_number()) ? answer_.load(std::memory_order_acquire)->reason
                                          : std::string();
}

bool Backend::answered(uint64_t process) const {
  const uint64_t by = answered_in_process_.load(std::memory_order_acquire);
  const bool ask_again = (draft_.flags & OPMUX_BACKEND_FORK_REINIT) != 0 && by != process;
  return by != 0 && !ask_again;
}

const Backend::Answer& Backend::answer() const {
  const uint64_t process = base::process_number();
  while (!answered(process)) {
    uint64_t prober = probing_in_process_.load(std::memory_order_acquire);
    if (prober == process) {
      probing_in_process_.wait(prober, std::memory_order_acquire);
      continue;
    }
    // Free, or held by a thread of the parent process, which does not exist in this process.
    if (!probing_in_process_.compare_exchange_strong(prober, process)) continue;
    // Other threads wait until this one has an answer, or no memory for one.
    struct Probing {
      ~Probing() {
        process.store(0, std::memory_order_release);
        process.notify_all();
      }
      std::atomic<uint64_t>& process;
    } const probing{probing_in_process_};
    if (!answered(process)) {
      answer_.store(ask(), std::memory_order_release);
      answered_in_process_.store(process, std::memory_order_release);
    }
  }
  return *answer_.load(std::memory_order_acquire);
}

const Backend::Answer* Backend::ask() const {
  const Answer* previous = answer_.load(std::memory_order_acquire);
  std::optional<std::string> refusal;
  try {
    if (draft_.probe) refusal = draft_.probe();
  } catch (const std::bad_alloc&) {
    // The next decision asks again, a limited number of times.
    constexpr uint32_t kMost = 16;
    if (without_memory_.fetch_add(1, std::memory_order_relaxed) < kMost) throw;
    refusal = "its probe ran out of memory " + std::to_string(kMost) + " times";
  } catch (const std::exception& thrown) {
    refusal = std::string("its probe threw: ") + thrown.what();
  } catch (...) {
    refusal = "its probe threw something that is not a std::exception";
  }
  const bool available = !refusal || refusal->empty();
  return new Answer{available, available ? std::string() : *std::move(refusal), previous};
}

void Backend::mark_used() const {
  uint64_t unused = 0;
  used_in_process_.compare_exchange_strong(unused, base::process_number(),
                                           std::memory_order_relaxed);
}

bool Backend::lost_by_fork() const {
  if ((draft_.flags & OPMUX_BACKEND_FORK_LOST) == 0) return false;
  const uint64_t used_in = used_in_process_.load(std::memory_order_relaxed);
  return used_in != 0 && used_in != base::process_number();
}

}  // namespace opmux::registry
