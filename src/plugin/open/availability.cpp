#include "plugin/open/availability.hpp"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/no_callback.hpp"
#include "base/system/process.hpp"
#include "base/text.hpp"
#include "crash/journal_part.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"

namespace opmux::plugin {
namespace {

using Answer = std::optional<std::string>;
using Probe = std::function<Answer()>;

/// A question that a separate thread answers. Shared by both threads, because either may end first.
struct Question {
  Probe probe;
  std::shared_ptr<void> owner;  ///< keeps the plugin loaded while the probe runs
  std::mutex mutex;
  std::condition_variable answered;
  bool done = false;
  Answer answer;
  std::exception_ptr thrown;  ///< by the probe, instead of an answer

  /// Runs the probe, on the separate thread. An exception cannot leave the thread, so it is kept.
  void ask() noexcept {
    Answer given;
    std::exception_ptr exception;
    try {
      given = probe();
    } catch (...) {
      exception = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    answer = std::move(given);
    thrown = std::move(exception);
    done = true;
    answered.notify_all();
  }
};

/// A thread that answers the question; not joinable if the system allows none.
std::thread start_thread(const std::shared_ptr<Question>& question) {
  const base::BlockedSignals blocked;
  try {
    return std::thread([question] { question->ask(); });
  } catch (const std::system_error&) {
    return {};
  }
}

/// True if this thread is inside the constructor of a plugin.
bool inside_constructor() {
  const dispatch::ThreadBlock& block = dispatch::own_thread_block();
  return crash::phase_of(block.places.innermost()) == crash::Phase::constructor;
}

Answer ask_within(const Probe& probe, const std::shared_ptr<void>& owner,
                  std::chrono::milliseconds deadline) {
  if (inside_constructor()) return probe();
  const auto question = std::make_shared<Question>();
  question->probe = probe;
  question->owner = owner;
  std::thread thread = start_thread(question);
  if (!thread.joinable()) return probe();
  const bool done = [&] {
    std::unique_lock lock(question->mutex);
    return question->answered.wait_for(lock, deadline, [&] { return question->done; });
  }();
  if (done) {
    thread.join();
    if (question->thrown) std::rethrow_exception(question->thrown);
    return std::move(question->answer);
  }
  thread.detach();
  return base::concat("its is_available function did not return within ", deadline.count(),
                      " ms; the backend is left out until the process ends");
}

}  // namespace

void journal_availability(registry::BackendDraft& backend) {
  if (!backend.probe) return;
  crash::JournalPart part =
      crash::backend_part(backend.name, backend.build_id, backend.kind == Kind::reference);
  backend.probe = [probe = std::move(backend.probe), part = std::move(part), name = backend.name] {
    const base::NoCallbackGuard no_callback("is_available of backend " + name);
    const dispatch::RunningCallGuard inside(crash::note_part(part), crash::Phase::is_available);
    return probe();
  };
}

void watch_availability(registry::BackendDraft& backend, std::chrono::milliseconds deadline) {
  if (!backend.probe) return;
  journal_availability(backend);
  backend.probe = [probe = std::move(backend.probe), owner = backend.owner, deadline] {
    return ask_within(probe, owner, deadline);
  };
}

}  // namespace opmux::plugin
