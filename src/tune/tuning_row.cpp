#include "tune/tuning_row.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "base/line_records.hpp"
#include "base/text.hpp"

namespace opmux::tune {
namespace {

constexpr std::string_view kThreads = "threads=", kEager = "eager", kCaptured = "captured";
constexpr size_t kMostDims = 64;

Status wrong_cell(std::string_view text, std::string_view why) {
  return {Code::invalid_argument, "tune.cell", base::concat("cell '", text, "': ", why)};
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const char* const start = text.data();
  const char* const end = start + text.size();
  const auto read = std::from_chars(start, end, value);
  return read.ec == std::errc() && read.ptr == end && !text.empty();
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_dtypes(std::string_view text) {
  if (text.empty()) return false;
  while (!text.empty()) {
    if (!is_name(base::take_until(text, ','))) return false;
  }
  return true;
}

}  // namespace

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != '#'; });
}

bool is_line(std::string_view text) {
  if (text.ends_with(' ')) return false;
  while (!text.empty()) {
    const std::string_view word = base::take_until(text, ' ');
    if (word.empty() || !is_word(word)) return false;
  }
  return true;
}

std::string_view rigor_name(Rigor rigor) {
  switch (rigor) {
    case Rigor::quick: return "quick";
    case Rigor::full: return "full";
    case Rigor::confirmed: return "confirmed";
  }
  return "unknown";
}

std::string text_of(const Cell& cell) {
  std::string text = cell.dtypes;
  for (const auto& [dim, value] : cell.dims) text += base::concat(" ", dim, "=", value);
  return text + base::concat(" ", kThreads, cell.threads, " ", cell.captured ? kCaptured : kEager);
}

Result<Cell> read_cell(std::string_view text) {
  Cell cell;
  std::string_view rest = text;
  const std::string_view dtypes = base::take_until(rest, ' ');
  if (!is_dtypes(dtypes)) return wrong_cell(text, "it must start with the types of its tensors");
  cell.dtypes = dtypes;
  std::string_view word = base::take_until(rest, ' ');
  while (!word.starts_with(kThreads)) {
    std::string_view value = word;
    const std::string_view dim = base::take_until(value, '=');
    int64_t size = 0;
    if (!is_name(dim) || !read_number(value, size) || size < 0 || cell.dims.size() == kMostDims)
      return wrong_cell(text, "dimensions are NAME=SIZE, followed by threads=COUNT");
    if (!cell.dims.empty() && cell.dims.back().first >= dim)
      return wrong_cell(text, "the dimensions are not in the order of their names");
    cell.dims.emplace_back(dim, size);
    word = base::take_until(rest, ' ');
  }
  if (!read_number(word.substr(kThreads.size()), cell.threads) || cell.threads == 0)
    return wrong_cell(text, "threads= needs a number of at least 1");
  if (rest != kEager && rest != kCaptured)
    return wrong_cell(text, "the last word must be 'eager' or 'captured'");
  cell.captured = rest == kCaptured;
  return cell;
}

int32_t to_units(double log_ratio) {
  if (std::isnan(log_ratio)) log_ratio = 0;
  const double bounded = std::clamp(log_ratio, -kLargestLogRatio, kLargestLogRatio);
  return static_cast<int32_t>(std::lround(bounded / kLogRatioUnit));
}

bool row_before(const TuningRow& a, const TuningRow& b) {
  return std::tie(a.cell, a.range, a.implementation, a.baseline) <
         std::tie(b.cell, b.range, b.implementation, b.baseline);
}

}  // namespace opmux::tune
