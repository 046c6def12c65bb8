#include "tuner/measured_point.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/line_records.hpp"
#include "base/text.hpp"

namespace opmux::tuner {
namespace {

using tune::Rigor;
using tune::TuningRow;

constexpr std::array kRigors{Rigor::quick, Rigor::full, Rigor::confirmed};

Status wrong_point(std::string_view line) {
  return {Code::invalid_argument, "tune.point",
          base::concat("'", line, "' is not a line of a measured point")};
}

template <class T>
bool read_number(std::string_view text, T& number) {
  const char* const start = text.data();
  const char* const end = start + text.size();
  const auto [at, error] = std::from_chars(start, end, number);
  return error == std::errc() && at == end;
}

tune::Build build_of(std::string_view word) {
  const std::string_view id = base::take_until(word, '@');
  return {std::string(id), std::string(word)};
}

std::string line_of(const Comparison& one) {
  std::array<char, 96> numbers;
  std::snprintf(numbers.data(), numbers.size(), " %.6f %.6f %.6f %u\n", one.log_ratio, one.low,
                one.high, one.rounds);
  return base::concat("compared ", one.implementation.id, "@", one.implementation.build,
                      std::string_view(numbers.data()));
}

bool read_comparison(std::string_view rest, Comparison& into) {
  into.implementation = build_of(base::take_until(rest, ' '));
  return read_number(base::take_until(rest, ' '), into.log_ratio) &&
         read_number(base::take_until(rest, ' '), into.low) &&
         read_number(base::take_until(rest, ' '), into.high) && read_number(rest, into.rounds) &&
         std::isfinite(into.log_ratio) && std::isfinite(into.low) && std::isfinite(into.high);
}

bool read_dropped(std::string_view rest, MeasuredPoint& point) {
  const bool number = read_number(base::take_until(rest, ' '), point.dropped);
  for (size_t i = 0; i < tune::race::kNoises; ++i) {
    point.noise = static_cast<tune::race::Noise>(i);
    if (noise_name(point.noise) == rest) return number;
  }
  return false;
}

bool read_line(std::string_view word, std::string_view rest, MeasuredPoint& point) {
  if (word == "baseline") {
    point.baseline = build_of(rest);
  } else if (word == "winner") {
    point.winner = rest;
  } else if (word == "day") {
    return read_number(rest, point.day);
  } else if (word == "rigor") {
    const auto found = std::ranges::find(kRigors, rest, tune::rigor_name);
    if (found == kRigors.end()) return false;
    point.rigor = *found;
  } else if (word == "dropped") {
    return read_dropped(rest, point);
  } else if (word == "compared") {
    return read_comparison(rest, point.comparisons.emplace_back());
  } else {
    return false;
  }
  return true;
}

/// The comparisons of one implementation at all points; empty if one lacks it.
std::vector<const Comparison*> everywhere(const tune::Build& implementation,
                                          std::span<const MeasuredPoint> points) {
  std::vector<const Comparison*> found;
  for (const MeasuredPoint& point : points) {
    const auto at =
        std::ranges::find(point.comparisons, implementation, &Comparison::implementation);
    if (at == point.comparisons.end()) return {};
    found.push_back(&*at);
  }
  return found;
}

void round_to_units(TuningRow& row) {
  for (double* number : {&row.log_ratio, &row.low, &row.high})
    *number = tune::from_units(tune::to_units(*number));
}

}  // namespace

std::string text_of(const MeasuredPoint& point) {
  std::string text =
      base::concat("baseline ", point.baseline.id, "@", point.baseline.build, "\nwinner ",
                   point.winner, "\nrigor ", rigor_name(point.rigor), "\nday ", point.day, "\n");
  if (point.dropped > 0)
    text += base::concat("dropped ", point.dropped, " ", noise_name(point.noise), "\n");
  for (const Comparison& one : point.comparisons) text += line_of(one);
  return text;
}

Result<MeasuredPoint> read_point(std::string_view text) {
  MeasuredPoint point;
  while (!text.empty()) {
    const std::string_view line = base::take_until(text, '\n');
    std::string_view rest = line;
    const std::string_view word = base::take_until(rest, ' ');
    if (!read_line(word, rest, point)) return wrong_point(line);
  }
  if (point.baseline.id.empty() || point.winner.empty()) return wrong_point("");
  return point;
}

std::vector<Stretch> parts_of(const Stretch& whole,
                              const std::map<int64_t, MeasuredPoint>& points) {
  const auto is_lost = [&](const Stretch& part) {
    return points.at(part.measured.front()).is_lost();
  };
  std::vector<Stretch> parts;
  for (const int64_t value : whole.measured) {
    if (parts.empty() || points.at(value).is_lost() != is_lost(parts.back()))
      parts.push_back({value, value, {}, whole.outcome});
    parts.back().last = value;
    parts.back().measured.push_back(value);
  }
  parts.front().first = whole.first;
  parts.back().last = whole.last;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (is_lost(parts[i])) {
      parts[i].first = parts[i - 1].last + 1;
    } else {
      parts[i - 1].last = parts[i].first - 1;
    }
  }
  return parts;
}

std::vector<TuningRow> rows_of(const tune::Cell& cell, const tune::Range& range,
                               std::span<const MeasuredPoint> points) {
  std::vector<TuningRow> rows;
  if (points.empty()) return rows;
  const MeasuredPoint& first = points.front();
  const bool one_baseline = std::ranges::all_of(
      points, [&](const MeasuredPoint& point) { return point.baseline == first.baseline; });
  if (!one_baseline) return rows;
  for (const Comparison& one : first.comparisons) {
    const std::vector<const Comparison*> found = everywhere(one.implementation, points);
    if (found.empty()) continue;
    TuningRow row;
    row.cell = cell;
    row.range = range;
    row.implementation = one.implementation;
    row.baseline = first.baseline;
    row.low = one.low;
    row.high = one.high;
    row.rigor = Rigor::full;
    row.day = first.day;
    for (size_t i = 0; i < points.size(); ++i) {
      row.log_ratio += found[i]->log_ratio / static_cast<double>(points.size());
      row.low = std::min(row.low, found[i]->low);
      row.high = std::max(row.high, found[i]->high);
      row.rounds += found[i]->rounds;
      row.rigor = std::min(row.rigor, points[i].rigor);
      row.day = std::min(row.day, points[i].day);
    }
    round_to_units(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_confirmation(std::vector<TuningRow>& rows, const MeasuredPoint& again) {
  for (TuningRow& row : rows) {
    const auto one =
        std::ranges::find(again.comparisons, row.implementation, &Comparison::implementation);
    if (one == again.comparisons.end() || again.baseline != row.baseline) continue;
    const bool same = verdict_of(row) == tune::verdict_of(one->log_ratio, one->low, one->high);
    if (same && row.rigor == Rigor::full) row.rigor = Rigor::confirmed;
    row.low = std::min(row.low, one->low);
    row.high = std::max(row.high, one->high);
    row.log_ratio = (row.log_ratio + one->log_ratio) / 2;
    row.rounds += one->rounds;
    round_to_units(row);
  }
}

const TuningRow* winning_row(std::span<const TuningRow> rows) {
  const TuningRow* best = nullptr;
  for (const TuningRow& row : rows) {
    if (verdict_of(row) != tune::Verdict::faster) continue;
    if (best == nullptr || row.log_ratio < best->log_ratio) best = &row;
  }
  return best;
}

}  // namespace opmux::tuner
