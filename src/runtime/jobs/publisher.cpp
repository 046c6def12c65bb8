#include "runtime/jobs/publisher.hpp"

#include <mutex>
#include <utility>

#include "base/memory.hpp"

namespace opmux::runtime {

/// A publication to the engine. `publish` is called at most once.
class Publisher::EnginePublication final : public registry::Publication {
 public:
  explicit EnginePublication(Publisher& publisher) : publisher_(publisher) {}

  void publish(registry::Change& change) override {
    const std::scoped_lock one(publisher_.publishing_);
    change.exchange();
    try {
      published_ = publisher_.engine_.publish(publisher_.latest());
    } catch (const std::bad_alloc&) {
      change.exchange();
      // latest() has applied the policies of the change.
      base::if_memory([&] { publisher_.shadow_.follow(*publisher_.policies_.set()); });
      throw;
    }
  }

  uint64_t finish() noexcept override {
    publisher_.engine_.finish(published_);
    // Without memory, breakers keep the limits of the policy before until the next publication.
    base::if_memory([&] { publisher_.health_.limits_changed(); });
    return published_.generation;
  }

 private:
  Publisher& publisher_;
  dispatch::Engine::Publication published_;
};

std::unique_ptr<registry::Publication> Publisher::begin() {
  return std::make_unique<EnginePublication>(*this);
}

void Publisher::stop_withdrawn() noexcept { engine_.stop_withdrawn(); }

dispatch::Engine::Sources Publisher::latest() {
  registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  quarantine_.apply(snapshot);
  shadow_.follow(*policies_.set());
  return {std::move(snapshot), policies_.set(), lock_.get()->set, *selector_.get()};
}

uint64_t Publisher::publish() {
  struct None final : registry::Change {
    void exchange() noexcept override {}
  } none;
  EnginePublication publication(*this);
  publication.publish(none);
  return publication.finish();
}

template <class T>
void Publisher::set(base::Published<T>& published, T value) {
  EnginePublication publication(*this);
  published.update(
      [&](T& current) {
        current = std::move(value);
        return true;
      },
      [&](auto& next) {
        registry::ChangeTo change(next);
        publication.publish(change);
      });
  publication.finish();
}

void Publisher::set_lock(Lock lock) { set(lock_, std::move(lock)); }

void Publisher::set_selector(std::shared_ptr<const Selector> selector) {
  set(selector_, std::move(selector));
}

}  // namespace opmux::runtime
