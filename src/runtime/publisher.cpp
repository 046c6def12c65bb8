#include "runtime/publisher.hpp"

#include <mutex>
#include <utility>

namespace opmux::runtime {

dispatch::Engine::Sources Publisher::latest() {
  registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  quarantine_.apply(snapshot);
  shadow_.follow(*policies_.set());
  return {std::move(snapshot), policies_.set(), lock_.get()->set, *selector_.get()};
}

uint64_t Publisher::publish() {
  dispatch::Engine::Publication publication;
  {
    const std::scoped_lock one(publishing_);
    publication = engine_.publish(latest());
  }
  engine_.finish(publication);
  health_.limits_changed();
  return publication.generation;
}

void Publisher::set_lock(Lock lock) {
  lock_.update([&](Lock& current) {
    current = std::move(lock);
    return true;
  });
  publish();
}

void Publisher::set_selector(std::shared_ptr<const Selector> selector) {
  selector_.update([&](auto& current) {
    current = std::move(selector);
    return true;
  });
  publish();
}

}  // namespace opmux::runtime
