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

}  // namespace opmux::base
