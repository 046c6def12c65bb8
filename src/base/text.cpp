#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace opmux::base {
namespace {

template <class T>
std::string join_all(std::span<const T> items, std::string_view separator) {
  std::string text;
  for (const T& item : items) {
    if (&item != items.data()) text.append(separator);
    append_piece(text, item);
  }
  return text;
}

/// Longer words are not compared, because the cost is the product of both lengths.
constexpr size_t kLongestWord = 128;

/// Edits are insertion, deletion, replacement, and swapping of neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> before_last(width), last(width), row(width);
  for (size_t j = 0; j < width; ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j < width; ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// Maximum number of edits for a suggestion: a third of the word, at least one letter, but never
/// the whole word.
size_t most_edits(std::string_view word, std::string_view candidate) {
  const size_t length = std::max(word.size(), candidate.size());
  return std::min(std::max<size_t>(1, length / 3), length - 1);
}

template <class Text>
std::string_view nearest_of(std::string_view word, std::span<const Text> candidates) {
  std::string_view best;
  size_t fewest = kLongestWord;
  if (word.size() > kLongestWord) return best;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestWord) continue;
    const size_t edits = edit_distance(word, candidate);
    if (edits < fewest && edits <= most_edits(word, candidate)) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

template <class Text>
std::string suggestion_of(std::string_view word, std::span<const Text> candidates) {
  const std::string_view best = nearest_of(word, candidates);
  return best.empty() ? std::string() : concat("; did you mean '", best, "'?");
}

}  // namespace

std::string join(std::span<const std::string> words, std::string_view separator) {
  return join_all(words, separator);
}

std::string join(std::span<const std::string_view> words, std::string_view separator) {
  return join_all(words, separator);
}

std::string join(std::span<const int64_t> numbers, std::string_view separator) {
  return join_all(numbers, separator);
}

std::string number_text(double number) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number);
  return {buffer, end.ptr};
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  return nearest_of(word, candidates);
}

std::string_view nearest(std::string_view word, std::span<const std::string> candidates) {
  return nearest_of(word, candidates);
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  return suggestion_of(word, candidates);
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  return suggestion_of(word, candidates);
}

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string without_controls(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t length = std::max<size_t>(utf8_length(text), 1);
    const auto first = static_cast<unsigned char>(text.front());
    const bool ascii_control = first < 0x20 && first != '\n' && first != '\t';
    // U+0080 to U+009F are control characters too: U+009B begins an escape sequence.
    const bool control = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    const bool malformed = length == 1 && first >= 0x80;
    if (ascii_control || first == 0x7F || control || malformed) {
      for (const char c : text.substr(0, length)) {
        const auto byte = static_cast<unsigned char>(c);
        shown.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
      }
    } else {
      shown.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace opmux::base
