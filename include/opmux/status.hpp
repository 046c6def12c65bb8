#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <opmux/abi.h>
#include <opmux/detail/export.hpp>
#include <opmux/detail/pointer.hpp>

namespace opmux {

/// How a request ended. Numbers never change and are shared with C (OPMUX_OK, OPMUX_NOT_FOUND ...);
/// the first six are the outcomes that a kernel may return.
enum class Code : int32_t {
  ok = OPMUX_OK,              ///< Success.
  declined = OPMUX_DECLINED,  ///< An implementation refused before it wrote anything.
  /// The caller passed a wrong value; retrying does not help.
  invalid_argument = OPMUX_INVALID_ARGUMENT,
  failed = OPMUX_FAILED,      ///< An implementation failed; outputs may be corrupted.
  resource = OPMUX_RESOURCE,  ///< Out of memory, workspace or another limited resource.
  /// The device is unusable in this process; replace the process.
  device_lost = OPMUX_DEVICE_LOST,
  not_found = 16,       ///< No operator, backend, implementation or file of that name.
  already_exists = 17,  ///< The name is taken by something different.
  no_candidate = 18,    ///< Policy, capabilities or health left nothing to run.
  outside_plan = 19,    ///< Arguments do not fit the bound plan; bind again or call the operator.
  revoked = 20,         ///< The bound plan may not run any more; refresh it.
  frozen = 21,          ///< The runtime is frozen and takes no more changes.
  unsupported = 22,     ///< This build, machine or object cannot do it.
  unavailable = 23,     ///< A file, folder or library is not usable at the moment.
};

/// The name of a code as logs, JSON and Python print it: "invalid_argument". "unknown" for a number
/// that is not a Code. The text has static lifetime.
OPMUX_API std::string_view name_of(Code code) noexcept;

/// Success, or a code with a stable reason and a message. Success allocates nothing, so returning a
/// Status from a hot function costs one null pointer.
///
/// Match on code() and reason(), which are stable; message() is for people and may change.
///
///   opmux::Result<opmux::Operator> found = runtime.op("rms_nrom");
///   if (!found) {
///     const opmux::Status why = found.error();
///     if (why.code() == opmux::Code::not_found) std::cerr << why.message() << "\n";
///   }
///
/// Copies are deep and independent. Two threads may read one Status; writing it needs a lock.
class [[nodiscard]] Status {
 public:
  /// Contents of a failure. A null Detail means success.
  struct Detail {
    Code code;
    /// Stable, dotted: "schema.dim_mismatch"; may be empty; see docs/reasons.md.
    std::string reason;
    std::string message;  ///< Attempted action, value found, suggested remedy.

    /// A copy, allocated with new. The failure for lack of memory needs no memory: it exists once
    /// and is shared.
    OPMUX_API Detail* copy() const;
    OPMUX_API static void* operator new(size_t size);
    /// Frees a Detail, but not the shared one.
    OPMUX_API static void operator delete(void* memory) noexcept;
  };

  /// Success.
  Status() noexcept = default;
  /// Takes ownership of `adopted`, which was allocated with new; null is success.
  explicit Status(Detail* adopted) noexcept : detail_(adopted) {}
  /// A failure; validators and kernels use it to report theirs. With Code::ok it is success, and
  /// reason and message are dropped.
  Status(Code code, std::string reason, std::string message)
      : detail_(code == Code::ok ? nullptr
                                 : new Detail{code, std::move(reason), std::move(message)}) {}

  /// A moved-from Status is ok.
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) : detail_(other.detail_ ? other.detail_->copy() : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }
  ~Status() = default;

  /// Whether the request succeeded. The other functions may be called in either case.
  bool ok() const noexcept { return detail_ == nullptr; }
  /// Code::ok after success.
  Code code() const noexcept { return detail_ ? detail_->code : Code::ok; }
  /// The stable reason, empty after success. The view is valid as long as this Status.
  std::string_view reason() const noexcept {
    return detail_ ? std::string_view(detail_->reason) : std::string_view();
  }
  /// The sentence for people, empty after success. The view is valid as long as this Status.
  std::string_view message() const noexcept {
    return detail_ ? std::string_view(detail_->message) : std::string_view();
  }

  /// One line for a log: "invalid_argument (schema.dim_mismatch): ...", or "ok".
  std::string to_string() const {
    if (ok()) return "ok";
    std::string text(name_of(code()));
    if (!reason().empty()) text.append(" (").append(reason()).append(")");
    return text.append(": ").append(message());
  }

  /// Gives up the detail, which the caller must delete; null after success. For bindings that carry
  /// a failure across a C boundary.
  Detail* release() noexcept { return detail_.release(); }

 private:
  detail::Owned<Detail> detail_;
};

/// The exception that Result::value() throws. Nothing else in opmux throws it.
///
///   try {
///     runtime.op("no_such_operator").value();
///   } catch (const opmux::Error& error) {
///     std::cerr << error.what() << "\n";
///   }
class OPMUX_API Error : public std::exception {
 public:
  explicit Error(Status status) : status_(std::move(status)), what_(status_.to_string()) {}
  /// Status::to_string(). Valid as long as this object.
  const char* what() const noexcept override { return what_.c_str(); }
  /// The failure, with code and reason. Valid as long as this object.
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
  std::string what_;
};

namespace detail {
/// Throws an Error with a copy of `status`.
[[noreturn]] OPMUX_API void throw_error(const Status& status);
/// `resource`, "resource.memory": an allocation failed. Allocates nothing, and neither do copies.
OPMUX_API Status out_of_memory() noexcept;
}  // namespace detail

/// A value, or the Status that explains why there is none. Members are named as in std::expected.
///
///   opmux::Result<opmux::Operator> op = runtime.op("softmax");
///   if (op) {
///     std::cout << op->schema() << "\n";
///   } else {
///     std::cerr << op.error().to_string() << "\n";
///   }
///
/// A Result owns its value.
template <class T>
class [[nodiscard]] Result {
 public:
  /// A success; implicit, so that a function can `return value;`.
  Result(T value) : value_(std::move(value)), has_value_(true) {}  // NOLINT(*-explicit-*)
  /// A failure; implicit, so that a function can `return status;`. `status` must not be ok.
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(*-explicit-*)

  /// Copyable if T is. A moved-from Result holds a moved-from value or status. T must not throw
  /// when it is moved by an assignment.
  Result(const Result& other)
    requires std::copy_constructible<T>
  {
    take(other);
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    take(std::move(other));
  }
  Result& operator=(const Result& other)
    requires std::copy_constructible<T>
  {
    if (this != &other) *this = Result(other);
    return *this;
  }
  Result& operator=(Result&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    take(std::move(other));
    return *this;
  }
  ~Result() { destroy(); }

  /// Whether there is a value; otherwise error() says why not.
  bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }

  /// The value. Use these after has_value() only: without a value they throw as value() does.
  T& operator*() & { return require(), value_; }
  const T& operator*() const& { return require(), value_; }
  T&& operator*() && { return require(), std::move(value_); }
  T* operator->() { return require(), &value_; }
  const T* operator->() const { return require(), &value_; }

  /// The value; throws opmux::Error if there is none. For programs that treat a failure as fatal,
  /// and for tests. In a program built without exceptions it ends the process instead.
  T& value() & { return **this; }
  const T& value() const& { return **this; }
  T&& value() && { return *std::move(*this); }

  /// The reason for the missing value, as a copy; ok if there is a value.
  Status error() const& { return has_value_ ? Status() : status_; }
  Status error() && { return has_value_ ? Status() : std::move(status_); }

  /// A copy of the value, or `other` if there is none.
  template <class U>
  T value_or(U&& other) const& {
    return has_value_ ? value_ : static_cast<T>(std::forward<U>(other));
  }

 private:
  void require() const {
    if (!has_value_) [[unlikely]]
      detail::throw_error(status_);
  }
  template <class Other>
  void take(Other&& other) {
    has_value_ = other.has_value_;
    if (has_value_) {
      ::new (static_cast<void*>(&value_)) T(std::forward<Other>(other).value_);
    } else {
      ::new (static_cast<void*>(&status_)) Status(std::forward<Other>(other).status_);
    }
  }
  void destroy() noexcept {
    if (has_value_) {
      value_.~T();
    } else {
      status_.~Status();
    }
  }

  union {
    T value_;        // NOLINT(readability-identifier-naming)
    Status status_;  // NOLINT(readability-identifier-naming)
  };
  bool has_value_ = false;
};

}  // namespace opmux
