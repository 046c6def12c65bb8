#include "base/status.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include <opmux/detail/function.hpp>
#include <opmux/status.hpp>

namespace opmux::base {
namespace {

constexpr size_t kLongestCode = 64;

bool printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

bool belongs_to_a_code(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

ErrorSink::ErrorSink() {
  error_.struct_size = sizeof(error_);
  error_.text = buffer_.data();
  error_.text_capacity = buffer_.size();
}

std::string ErrorSink::text() const {
  // Read from buffer_, because foreign code may have changed the pointer in the struct.
  std::string text(buffer_.data(), std::min(error_.text_size, buffer_.size()));
  std::replace_if(text.begin(), text.end(), [](char c) { return !printable(c); }, '?');
  return text;
}

std::string ErrorSink::code() const {
  if (error_.code.data == nullptr || error_.code.size > kLongestCode) return {};
  const std::string_view code(error_.code.data, error_.code.size);
  return std::all_of(code.begin(), code.end(), belongs_to_a_code) ? std::string(code)
                                                                  : std::string();
}

void write_error(opmux_error* error, int32_t outcome, std::string_view text) noexcept {
  if (error == nullptr) return;
  error->outcome = outcome;
  error->text_size = error->text == nullptr ? 0 : std::min(text.size(), error->text_capacity);
  if (error->text_size != 0) std::memcpy(error->text, text.data(), error->text_size);
}

}  // namespace opmux::base

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

namespace opmux {
namespace {

/// The failure for lack of memory. Never destroyed, because threads may end after static
/// destruction. Its texts are short enough to be stored without an allocation.
union NoMemory {
  NoMemory() : detail{Code::resource, "resource.memory", "out of memory"} {}
  ~NoMemory() {}  // NOLINT(modernize-use-equals-default): the detail stays
  Status::Detail detail;
};
NoMemory no_memory;

}  // namespace

Status::Detail* Status::Detail::copy() const {
  return this == &no_memory.detail ? &no_memory.detail : new Detail(*this);
}

void* Status::Detail::operator new(size_t size) { return ::operator new(size); }

void Status::Detail::operator delete(void* memory) noexcept {
  // The destructor has run. It leaves short texts as they are, so the shared detail stays usable.
  if (memory != &no_memory.detail) ::operator delete(memory);
}

Status detail::out_of_memory() noexcept { return Status(&no_memory.detail); }

}  // namespace opmux

void opmux::detail::throw_error(const Status& status) { throw Error(status); }
void opmux::detail::throw_empty_function() { throw std::bad_function_call(); }
