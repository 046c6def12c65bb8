#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <opmux/detail/call_site.hpp>
#include <opmux/detail/export.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

/// Conversion of C++ arguments to the form that the library takes. Programs do not use it by name.
namespace detail {

/// The view that stands for every absent tensor argument: pointers to tensors are never null.
OPMUX_API extern const TensorView absent_tensor;

/// The kind of argument that a C++ type is passed as; other types do not compile.
template <class T>
constexpr ArgTag tag_of() {
  if constexpr (std::same_as<T, Constant>) {
    return ArgTag::constant;
  } else if constexpr (std::derived_from<T, TensorView> || std::derived_from<T, In> ||
                       std::same_as<T, std::nullopt_t>) {
    return ArgTag::tensor;
  } else if constexpr (std::same_as<T, bool>) {
    return ArgTag::logical;
  } else if constexpr (std::integral<T> || std::is_enum_v<T>) {
    return ArgTag::integer;
  } else if constexpr (std::floating_point<T>) {
    return ArgTag::floating;
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return ArgTag::string;
  } else {
    static_assert(
        std::convertible_to<const T&, std::span<const int64_t>>,
        "an argument is a TensorView, opmux::none, a number, a word or a list of int64_t");
    return ArgTag::integer_list;
  }
}

/// The eight bytes of one argument. Strings and lists go through `list`, which must outlive them.
template <class T>
ArgValue value_of(const T& argument, opmux_list& list) {
  ArgValue value;
  constexpr ArgTag kTag = tag_of<T>();
  if constexpr (kTag == ArgTag::constant) {
    value.tensor = &argument.view();
  } else if constexpr (std::derived_from<T, TensorView>) {
    value.tensor = &argument;
  } else if constexpr (std::derived_from<T, In>) {
    value.tensor = &argument.view();
  } else if constexpr (kTag == ArgTag::tensor) {
    value.tensor = &absent_tensor;
  } else if constexpr (kTag == ArgTag::logical || kTag == ArgTag::integer) {
    value.i64 = static_cast<int64_t>(argument);
  } else if constexpr (kTag == ArgTag::floating) {
    value.f64 = static_cast<double>(argument);
  } else if constexpr (kTag == ArgTag::string) {
    const std::string_view text(argument);
    list = {text.data(), text.size()};
    value.list = &list;
  } else {
    const std::span<const int64_t> items(argument);
    list = {items.data(), items.size()};
    value.list = &list;
  }
  return value;
}

/// The arguments of one call in the caller's stack frame: one word each, and a compile-time
/// constant with their kinds. It borrows everything, so it must not outlive the full expression of
/// the call.
template <class... Args>
struct Packed {
  static_assert(sizeof...(Args) <= OPMUX_MAX_ARGS, "an operator has at most 24 arguments");
  static constexpr CallSite site{tag_of<Args>()...};
  static constexpr int kTensors = (0 + ... + (tag_of<Args>() == ArgTag::tensor ? 1 : 0));
  static constexpr int kConstants = (0 + ... + (tag_of<Args>() == ArgTag::constant ? 1 : 0));
  static constexpr bool kHasConstant = kConstants != 0;
  /// Number of words that point to views: those of tensors and of constants.
  static constexpr int kViews = kTensors + kConstants;
  static constexpr int kScalars = static_cast<int>(sizeof...(Args)) - kViews;
  /// Whether the arguments of a plan fit into registers: at most four, views first, scalars after
  /// them.
  static constexpr bool kPlanInRegisters = [] {
    if (kViews < 1 || site.count() > 4) return false;
    for (uint32_t i = 0; i < site.count(); ++i) {
      const ArgTag tag = site.tag(i);
      const bool view = tag == ArgTag::tensor || tag == ArgTag::constant;
      if (view != (i < static_cast<uint32_t>(kViews)) || is_list(tag)) return false;
    }
    return true;
  }();
  /// The same for a call of an operator, which takes another path if it has a constant.
  static constexpr bool kInRegisters = kPlanInRegisters && !kHasConstant;
  static constexpr size_t kLists = (size_t{0} + ... + (is_list(tag_of<Args>()) ? 1 : 0));

  explicit Packed(const Args&... args) {
    [[maybe_unused]] size_t i = 0;
    [[maybe_unused]] size_t at = 0;
    ((values[i++] = value_of(args, lists[at]), at += is_list(tag_of<Args>()) ? 1 : 0), ...);
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  /// Argument i as a word; 0 beyond the last.
  uint64_t word(size_t i) const {
    return i < sizeof...(Args) ? std::bit_cast<uint64_t>(values[i]) : 0;
  }

  ArgValue values[sizeof...(Args) + 1];
  opmux_list lists[kLists + 1];
};

}  // namespace detail

}  // namespace opmux
