#include "runtime/registration.hpp"

namespace opmux {

void Registration::Held::unpublish() {
  if (take_back) take_back();
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
  Status status = held->core->engine().wait_for_retired();
  // A call that was in flight may have packed constants since.
  held->core->packs()->drop_withdrawn();
  return status;
}

std::vector<Registration> Registration::split() {
  std::vector<Registration> parts;
  if (held_ == nullptr) return parts;
  const detail::Owned<Held> held = std::move(held_);
  if (held->take_back) {
    parts.emplace_back(std::make_unique<Held>(*held->core, std::move(held->take_back)));
  }
  for (registry::ImplementationPtr& each : held->implementations) {
    parts.emplace_back(std::make_unique<Held>(*held->core, std::vector{std::move(each)}));
  }
  return parts;
}

void Registration::keep() noexcept { held_.reset(); }

}  // namespace opmux
