#include "runtime/registration.hpp"

#include "base/memory.hpp"

namespace opmux {

void Registration::Held::unpublish() noexcept {
  // Without memory the answers of a point stay registered.
  if (take_back) base::if_memory(take_back);
  core->registry().withdraw(implementations);
  core->packs()->drop_withdrawn();
  implementations.clear();
}

Registration::Registration() noexcept = default;
Registration::Registration(detail::Owned<Held> held) noexcept : held_(std::move(held)) {}
Registration::Registration(Registration&&) noexcept = default;

Registration& Registration::operator=(Registration&& other) noexcept {
  if (held_ != nullptr) held_->unpublish();
  held_ = std::move(other.held_);
  return *this;
}

Registration::~Registration() {
  if (held_ != nullptr) held_->unpublish();
}

Status Registration::withdraw() {
  if (held_ == nullptr) return {};
  const detail::Owned<Held> held = std::move(held_);
  held->unpublish();
  Status status = base::or_out_of_memory([&] { return held->core->engine().wait_for_retired(); });
  // A call that was in flight may have packed constants since.
  held->core->packs()->drop_withdrawn();
  return status;
}

std::vector<Registration> Registration::split() {
  std::vector<Registration> parts;
  if (held_ == nullptr) return parts;
  // All of them are made before they are responsible for withdrawing something.
  std::vector<std::unique_ptr<Held>> made;
  if (held_->take_back) made.push_back(std::make_unique<Held>(*held_->core, held_->take_back));
  for (const registry::ImplementationPtr& each : held_->implementations) {
    made.push_back(std::make_unique<Held>(*held_->core, std::vector{each}));
  }
  parts.reserve(made.size());
  for (std::unique_ptr<Held>& each : made) parts.emplace_back(std::move(each));
  held_.reset();
  return parts;
}

void Registration::keep() noexcept { held_.reset(); }

}  // namespace opmux
