#include <opmux/status.hpp>

namespace opmux {

std::string_view name_of(Code code) noexcept {
  switch (code) {
    case Code::ok: return "ok";
    case Code::declined: return "declined";
    case Code::invalid_argument: return "invalid_argument";
    case Code::failed: return "failed";
    case Code::resource: return "resource";
    case Code::device_lost: return "device_lost";
    case Code::not_found: return "not_found";
    case Code::already_exists: return "already_exists";
    case Code::no_candidate: return "no_candidate";
    case Code::outside_plan: return "outside_plan";
    case Code::revoked: return "revoked";
    case Code::frozen: return "frozen";
    case Code::unsupported: return "unsupported";
    case Code::unavailable: return "unavailable";
  }
  return "unknown";
}

}  // namespace opmux
