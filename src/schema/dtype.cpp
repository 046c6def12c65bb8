#include <array>
#include <charconv>
#include <string>

#include <opmux/tensor.hpp>

#include "schema/dtype.hpp"

namespace opmux {
namespace {

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr std::array kNamed{
    NamedDType{"f64", f64},
    NamedDType{"f32", f32},
    NamedDType{"f16", f16},
    NamedDType{"bf16", bf16},
    NamedDType{"i64", i64},
    NamedDType{"i32", i32},
    NamedDType{"i16", i16},
    NamedDType{"i8", i8},
    NamedDType{"u64", {OPMUX_DTYPE_UINT, 64}},
    NamedDType{"u32", {OPMUX_DTYPE_UINT, 32}},
    NamedDType{"u16", {OPMUX_DTYPE_UINT, 16}},
    NamedDType{"u8", u8},
    NamedDType{"bool", boolean},
    NamedDType{"f8_e4m3fn", f8_e4m3fn},
    NamedDType{"f8_e4m3fnuz", f8_e4m3fnuz},
    NamedDType{"f8_e5m2", f8_e5m2},
    NamedDType{"f8_e5m2fnuz", f8_e5m2fnuz},
    NamedDType{"f4_e2m1fn_x2", f4_e2m1fn_x2},
};

/// torch writes "float8_e4m3fn" where opmux writes "f8_e4m3fn".
constexpr std::string_view kLongWord = "float";

/// Parses a number followed by `end` and removes both from `text`.
template <class T>
bool take_number(std::string_view& text, std::string_view end, T& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  if (!text.starts_with(end)) return false;
  text.remove_prefix(end.size());
  return true;
}

}  // namespace

std::string name_of(DType dtype) {
  for (const NamedDType& named : kNamed) {
    if (named.dtype == dtype) return std::string(named.name);
  }
  return std::to_string(dtype.code) + "." + std::to_string(dtype.bits) + "x" +
         std::to_string(dtype.lanes);
}

DType parse_dtype(std::string_view word) {
  const bool is_long = word.starts_with(kLongWord);
  for (const NamedDType& named : kNamed) {
    if (named.name == word) return named.dtype;
    const bool small = named.name.starts_with("f8_") || named.name.starts_with("f4_");
    if (is_long && small && named.name.substr(1) == word.substr(kLongWord.size())) {
      return named.dtype;
    }
  }
  DType dtype;
  if (take_number(word, ".", dtype.code) && take_number(word, "x", dtype.bits) &&
      take_number(word, "", dtype.lanes) && word.empty()) {
    return dtype;
  }
  return {};
}

std::vector<schema::Named> schema::named_dtypes() {
  std::vector<Named> all;
  for (const NamedDType& named : kNamed) all.push_back({named.name, named.dtype.packed()});
  return all;
}

}  // namespace opmux
