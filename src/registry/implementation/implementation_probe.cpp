#include "registry/implementation/implementation_probe.hpp"

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "base/no_callback.hpp"
#include "registry/record.hpp"

namespace opmux::registry {
namespace {

std::string asked(const std::function<std::string()>& ask) {
  const base::NoCallbackGuard no_callback("the probe of an implementation");
  try {
    return ask();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return std::string("its probe threw: ") + thrown.what();
  } catch (...) {
    return "its probe threw something that is not a std::exception";
  }
}

}  // namespace

const std::string& ImplementationProbe::why_not() const {
  if (const std::string* const known = answer_.load(std::memory_order_acquire)) return *known;
  static const std::string kAsking = "a probe that has not answered yet is asking for it";
  if (base::NoCallbackGuard::active() != nullptr) return kAsking;
  auto made = std::make_unique<const std::string>(asked(ask_));
  const std::string* first = nullptr;
  if (answer_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *first;
}

std::string why_unavailable(const ImplementationRecord& implementation) {
  const Backend& backend = *implementation.backend;
  if (!backend.available()) return backend.unavailable_reason();
  return implementation.probe == nullptr ? std::string() : implementation.probe->why_not();
}

}  // namespace opmux::registry
