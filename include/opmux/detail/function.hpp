#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <opmux/detail/export.hpp>

/// The type of functions that a program hands to the library: listeners, kernels, selectors. It is
/// made from the same functions as std::function and may be assigned to one, but does not need
/// <functional>, which costs every source that includes opmux a tenth of a second. Internal:
/// programs do not use it by name.
namespace opmux::detail {

/// Throws std::bad_function_call.
[[noreturn]] OPMUX_API void throw_empty_function();

template <class Signature>
class Function;

/// Owns a copy of a function object, or is empty. Copies are deep.
template <class R, class... Parameters>
class Function<R(Parameters...)> {
 public:
  using result_type = R;

  Function() noexcept = default;
  Function(std::nullptr_t) noexcept {}  // NOLINT(*-explicit-*)
  /// Holds `function`; empty if that is a null pointer or an empty std::function.
  template <class Callable>
    requires(!std::is_same_v<Callable, Function> &&
             std::is_invocable_r_v<R, Callable&, Parameters...>)
  Function(Callable function) {  // NOLINT(*-explicit-*)
    if constexpr (std::is_pointer_v<Callable> || requires {
                    typename Callable::result_type;
                    static_cast<bool>(function);
                  }) {
      if (!function) return;
    }
    held_ = new Of<Callable>(std::move(function));
  }
  Function(const Function& other) : held_(other.held_ == nullptr ? nullptr : other.held_->copy()) {}
  Function(Function&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Function& operator=(Function other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Function() { delete held_; }

  explicit operator bool() const noexcept { return held_ != nullptr; }
  R operator()(Parameters... arguments) const {
    if (held_ == nullptr) throw_empty_function();
    return held_->call(std::forward<Parameters>(arguments)...);
  }

 private:
  struct Held {
    Held() = default;
    Held(const Held&) = default;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
    virtual Held* copy() const = 0;
    virtual R call(Parameters... arguments) = 0;
  };
  template <class Callable>
  struct Of final : Held {
    explicit Of(Callable kept) : function(std::move(kept)) {}
    Held* copy() const override { return new Of(*this); }
    R call(Parameters... arguments) override {
      if constexpr (std::is_void_v<R>) {
        function(std::forward<Parameters>(arguments)...);
      } else {
        return function(std::forward<Parameters>(arguments)...);
      }
    }
    Callable function;
  };

  Held* held_ = nullptr;
};

}  // namespace opmux::detail
