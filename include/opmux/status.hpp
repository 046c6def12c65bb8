#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <opmux/abi.h>
#include <opmux/export.hpp>

namespace opmux {

/// What became of a request. The numbers never change; the first six are the outcomes of abi.h.
enum class Code : int32_t {
  ok = OPMUX_OK,
  declined = OPMUX_DECLINED,
  invalid_argument = OPMUX_INVALID_ARGUMENT,
  failed = OPMUX_FAILED,
  resource = OPMUX_RESOURCE,
  device_lost = OPMUX_DEVICE_LOST,
  not_found = 16,
  already_exists = 17,
  no_candidate = 18,  ///< policy, capabilities or health left nothing to run
  outside_plan = 19,  ///< arguments do not fit the bound plan
  revoked = 20,       ///< the bound plan may not run any more
  frozen = 21,        ///< the runtime takes no more changes
  unsupported = 22,
  unavailable = 23,
};

/// The word for a code, as it stands in logs, JSON and Python: "invalid_argument".
OPMUX_API std::string_view name_of(Code code) noexcept;

/// Success, or a code with a reason word and a sentence. Success allocates nothing.
///
/// Values are independent of each other; one value is not to be written from two threads.
class [[nodiscard]] Status {
 public:
  /// What failure carries; null means success. Adopted by the constructor below.
  struct Detail {
    Code code;
    std::string reason;   ///< stable, dotted: "schema.dim_mismatch"; may be empty
    std::string message;  ///< what was attempted, what was found, what would help
  };

  Status() noexcept = default;
  explicit Status(Detail* adopted) noexcept : detail_(adopted) {}
  Status(Code code, std::string reason, std::string message)
      : detail_(code == Code::ok ? nullptr
                                 : new Detail{code, std::move(reason), std::move(message)}) {}

  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) : detail_(other.detail_ ? new Detail(*other.detail_) : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }
  ~Status() = default;

  bool ok() const noexcept { return detail_ == nullptr; }
  Code code() const noexcept { return detail_ ? detail_->code : Code::ok; }
  std::string_view reason() const noexcept {
    return detail_ ? std::string_view(detail_->reason) : std::string_view();
  }
  std::string_view message() const noexcept {
    return detail_ ? std::string_view(detail_->message) : std::string_view();
  }

  /// "invalid_argument (schema.dim_mismatch): ...", or "ok".
  std::string to_string() const {
    if (ok()) return "ok";
    std::string text(name_of(code()));
    if (!reason().empty()) text.append(" (").append(reason()).append(")");
    return text.append(": ").append(message());
  }

  Detail* release() noexcept { return detail_.release(); }

 private:
  std::unique_ptr<Detail> detail_;
};

/// Thrown by Result::value() and by nothing else.
class OPMUX_API Error : public std::exception {
 public:
  explicit Error(Status status) : status_(std::move(status)), what_(status_.to_string()) {}
  const char* what() const noexcept override { return what_.c_str(); }
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
  std::string what_;
};

/// A value, or the Status that says why there is none. Member names are those of std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(*-explicit-*)
  /// `status` must not be ok.
  Result(Status status)  // NOLINT(*-explicit-*)
      : state_(std::in_place_index<1>, std::move(status)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  /// The value; throws opmux::Error if there is none.
  T& value() & { return require(), **this; }
  const T& value() const& { return require(), **this; }
  T&& value() && { return require(), std::move(**this); }

  /// Why there is no value; ok if there is one.
  Status error() const& { return has_value() ? Status() : std::get<1>(state_); }
  Status error() && { return has_value() ? Status() : std::get<1>(std::move(state_)); }

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

 private:
  void require() const {
#if defined(__cpp_exceptions)
    if (!has_value()) throw Error(std::get<1>(state_));
#endif
  }

  std::variant<T, Status> state_;
};

}  // namespace opmux
