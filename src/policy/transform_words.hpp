#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The words of `transforms` lists.
namespace opmux::policy {

inline constexpr uint8_t kContiguous = 1, kWiden = 2;

inline constexpr std::array<std::string_view, 3> kTransformWords{"none", "contiguous", "widen"};

/// The bits for a list of words; nullopt if the list is empty, has an unknown word, or combines
/// `none` with others.
inline std::optional<uint8_t> transform_bits(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  uint8_t bits = 0;
  for (const std::string& word : words) {
    if (word == "contiguous") {
      bits |= kContiguous;
    } else if (word == "widen") {
      bits |= kWiden;
    } else if (word != "none" || words.size() > 1) {
      return std::nullopt;
    }
  }
  return bits;
}

}  // namespace opmux::policy
