#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace opmux::base {

/// Joins the elements with `separator` between them.
std::string join(std::span<const std::string> words, std::string_view separator);
std::string join(std::span<const std::string_view> words, std::string_view separator);
std::string join(std::span<const int64_t> numbers, std::string_view separator);

/// The shortest text that parses back to the same number: "1e-06", "0.5", "1".
std::string number_text(double number);

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours) from `word`; the
/// first one of equals. Empty if none is close enough to be a likely typo.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);
std::string_view nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'x'?" with the nearest candidate; empty if there is none.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// Length in bytes of the UTF-8 sequence at the start of `text`; 0 if it is not well-formed.
size_t utf8_length(std::string_view text);

/// The text with every control character except newline and tab as "\x1b", and so are bytes that
/// are not UTF-8. For texts of other users and processes that a person reads in a terminal, which
/// would obey escape sequences in them.
std::string without_controls(std::string_view text);

inline void append_piece(std::string& text, std::string_view piece) { text.append(piece); }
inline void append_piece(std::string& text, char piece) { text.push_back(piece); }
template <std::integral T>
void append_piece(std::string& text, T piece) {
  text.append(std::to_string(piece));
}

/// Concatenates strings, characters and integers into one text.
template <class... Pieces>
std::string concat(const Pieces&... pieces) {
  std::string text;
  (append_piece(text, pieces), ...);
  return text;
}

}  // namespace opmux::base
