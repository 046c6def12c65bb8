#include "tuner/tuning_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/line_records.hpp"
#include "base/text.hpp"

namespace opmux::tuner {
namespace {

using tune::Build;
using tune::Range;
using tune::TuningRow;
using tune::TuningSet;

constexpr std::string_view kTitle = "opmux-tuning 1";
constexpr size_t kMostBytes = size_t{256} << 20;

template <class... Values>
std::string printed(const char* format, Values... values) {
  std::array<char, 128> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), format, values...);
  return {buffer.data(), static_cast<size_t>(size)};
}

std::string build_text(const Build& build) { return base::concat(build.id, "@", build.build); }

std::string line_of(const TuningRow& row) {
  return base::concat("row ", text_of(row.range), " ", build_text(row.implementation), " vs ",
                      build_text(row.baseline),
                      printed(" log=%.4f low=%.4f high=%.4f", row.log_ratio, row.low, row.high),
                      " rounds=", row.rounds, " rigor=", rigor_name(row.rigor),
                      " date=", date_of(row.day), " tool=", row.tool,
                      printed(" host=%016lx", static_cast<unsigned long>(row.host)), "  # ",
                      describe(row), "\n");
}

/// The words of a line, of which each is taken once and in order.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line.substr(0, line.find('#'))) {}

  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return base::take_until(rest_, ' ');
  }
  /// The next word without its start `name`; records a problem if it starts otherwise.
  std::string_view value(std::string_view name) {
    const std::string_view word = next();
    if (!word.starts_with(name)) {
      if (problem_.empty()) problem_ = base::concat("expected ", name, "..., found '", word, "'");
      return {};
    }
    return word.substr(name.size());
  }
  template <class T>
  T number(std::string_view name, int base = 10) {
    const std::string_view text = value(name);
    T read{};
    const char* const start = text.data();
    const char* const end = start + text.size();
    if (problem_.empty()) {
      const auto done = [&] {
        if constexpr (std::is_floating_point_v<T>)
          return std::from_chars(start, end, read);
        else
          return std::from_chars(start, end, read, base);
      }();
      if (done.ec != std::errc() || done.ptr != end || text.empty())
        problem_ = base::concat("'", text, "' is not a number for ", name);
    }
    return read;
  }
  /// Everything that is left, without spaces at the ends.
  std::string_view all() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const size_t last = rest_.find_last_not_of(' ');
    return std::exchange(rest_, {}).substr(0, last == rest_.npos ? 0 : last + 1);
  }
  bool has(std::string_view problem) {
    if (problem_.empty()) problem_ = problem;
    return false;
  }
  const std::string& problem() const { return problem_; }

 private:
  std::string_view rest_;
  std::string problem_;
};

Build read_build(Words& words, std::string_view text) {
  Build build;
  build.id = base::take_until(text, '@');
  build.build = text;
  if (build.id.empty()) words.has("an implementation is ID@BUILD");
  return build;
}

Range read_range(Words& words, std::string_view text) {
  Range range;
  if (text == "*") return range;
  range.dim = base::take_until(text, '=');
  const size_t dots = text.find("..");
  const auto number = [&](std::string_view digits, int64_t& value) {
    const char* const start = digits.data();
    const char* const end = start + digits.size();
    const auto read = std::from_chars(start, end, value);
    return read.ec == std::errc() && read.ptr == end && !digits.empty();
  };
  if (range.dim.empty() || dots == text.npos || !number(text.substr(0, dots), range.first) ||
      !number(text.substr(dots + 2), range.last) || range.first > range.last)
    words.has("a range is DIM=FIRST..LAST or *");
  return range;
}

uint32_t read_day(Words& words, std::string_view text) {
  std::string digits(text);
  int year = 0;
  unsigned month = 0, day = 0;
  int used = 0;
  if (std::sscanf(digits.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &used) == 3 &&
      static_cast<size_t>(used) == text.size()) {
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                           std::chrono::day(day)};
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    if (date.ok() && days >= 0 && days <= int64_t{tune::kLastDay})
      return static_cast<uint32_t>(days);
  }
  words.has("a date is YYYY-MM-DD");
  return 0;
}

tune::Rigor read_rigor(Words& words, std::string_view text) {
  for (const tune::Rigor rigor : {tune::Rigor::quick, tune::Rigor::full, tune::Rigor::confirmed}) {
    if (text == rigor_name(rigor)) return rigor;
  }
  words.has("rigor is quick, full or confirmed");
  return {};
}

TuningRow read_row(Words& words, const tune::Cell& cell) {
  TuningRow row;
  row.cell = cell;
  row.range = read_range(words, words.next());
  row.implementation = read_build(words, words.next());
  if (words.next() != "vs") words.has("'vs' and the baseline must follow the implementation");
  row.baseline = read_build(words, words.next());
  const auto log_ratio = [&](std::string_view name) {
    return tune::from_units(tune::to_units(words.number<double>(name)));
  };
  row.log_ratio = log_ratio("log=");
  row.low = log_ratio("low=");
  row.high = log_ratio("high=");
  row.rounds = words.number<uint32_t>("rounds=");
  row.rigor = read_rigor(words, words.value("rigor="));
  row.day = read_day(words, words.value("date="));
  row.tool = words.value("tool=");
  row.host = words.number<uint64_t>("host=", 16);
  if (!(row.low <= row.log_ratio && row.log_ratio <= row.high))
    words.has("log must be between low and high");
  return row;
}

/// Reads the lines in order.
class Reader {
 public:
  Result<TuningSet> read(std::string_view text) {
    if (text.size() > kMostBytes) return wrong("the text is larger than 256 MiB");
    if (text.find('\0') != text.npos) return wrong("the text has a zero byte");
    while (!text.empty()) {
      ++line_;
      Words words(base::take_until(text, '\n'));
      const std::string_view first = words.next();
      if (first.empty()) continue;
      if (!read_line(first, words)) return wrong(words.problem());
      if (const std::string_view more = words.all(); !words.problem().empty() || !more.empty())
        return wrong(words.problem().empty() ? base::concat("unexpected '", more, "'")
                                             : words.problem());
    }
    if (!titled_) return wrong(base::concat("the first line must be '", kTitle, " ...'"));
    return std::move(set_);
  }

 private:
  Status wrong(std::string_view why) const {
    return {Code::invalid_argument, "tune.text",
            base::concat("line ", std::max<size_t>(line_, 1), ": ", why)};
  }

  bool read_line(std::string_view first, Words& words) {
    if (!titled_) return read_title(first, words);
    if (first == "machine") {
      set_.machines.push_back({std::string(words.all()), ""});
      has_operator_ = has_cell_ = false;
      return true;
    }
    if (set_.machines.empty()) return words.has("a machine must come first");
    if (first == "soft") {
      set_.machines.back().soft = words.all();
      return true;
    }
    if (first == "operator") return read_operator(words);
    if (first == "cell") return read_cell_line(words);
    if (first != "row") return words.has(base::concat("unknown word '", first, "'"));
    if (!has_cell_) return words.has("a row belongs to a cell, which must come first");
    set_.operators.back().rows.push_back(read_row(words, cell_));
    return true;
  }

  bool read_title(std::string_view first, Words& words) {
    const std::string title = base::concat(first, " ", words.next());
    if (title != kTitle)
      return words.has(base::concat("the first line must be '", kTitle, " ...'"));
    set_.measurement = words.number<uint32_t>("measurement=");
    titled_ = true;
    return true;
  }

  bool read_operator(Words& words) {
    tune::OperatorRows one;
    one.op = words.next();
    one.schema_hash = words.number<uint64_t>("schema=", 16);
    one.machine = static_cast<uint32_t>(set_.machines.size() - 1);
    set_.operators.push_back(std::move(one));
    has_operator_ = true;
    has_cell_ = false;
    return true;
  }

  bool read_cell_line(Words& words) {
    if (!has_operator_) return words.has("a cell belongs to an operator, which must come first");
    Result<tune::Cell> cell = tune::read_cell(words.all());
    if (!cell) return words.has(cell.error().message());
    cell_ = std::move(*cell);
    has_cell_ = true;
    return true;
  }

  TuningSet set_;
  tune::Cell cell_;
  size_t line_ = 0;
  bool titled_ = false, has_operator_ = false, has_cell_ = false;
};

}  // namespace

std::string date_of(uint32_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return printed("%04d-%02u-%02u", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string text_of(const Range& range) {
  if (range.dim.empty()) return "*";
  return base::concat(range.dim, "=", range.first, "..", range.last);
}

std::string describe(const TuningRow& row) {
  // How many times as fast; the bounds change places.
  const auto speed = [](double log_ratio) { return std::exp(-log_ratio); };
  const std::string ratio =
      printed("%.2fx [%.2f, %.2f]", speed(row.log_ratio), speed(row.high), speed(row.low));
  const std::string& baseline = row.baseline.id;
  switch (verdict_of(row)) {
    case tune::Verdict::faster: return base::concat(ratio, " faster than ", baseline);
    case tune::Verdict::slower: return base::concat(ratio, ", slower than ", baseline);
    case tune::Verdict::same: return base::concat("as fast as ", baseline, ", ", ratio);
    case tune::Verdict::unclear: return base::concat("unclear against ", baseline, ", ", ratio);
  }
  return ratio;
}

std::string text_of(const TuningSet& set) {
  std::string text = base::concat(kTitle, " measurement=", set.measurement, "\n");
  for (size_t machine = 0; machine < set.machines.size(); ++machine) {
    text += base::concat("\nmachine ", set.machines[machine].hard, "\nsoft ",
                         set.machines[machine].soft, "\n");
    for (const tune::OperatorRows& one : set.operators) {
      if (one.machine != machine) continue;
      text +=
          base::concat("\noperator ", one.op,
                       printed(" schema=%016lx\n", static_cast<unsigned long>(one.schema_hash)));
      const tune::Cell* cell = nullptr;
      for (const TuningRow& row : one.rows) {
        if (cell == nullptr || *cell != row.cell) text += "cell " + text_of(row.cell) + "\n";
        cell = &row.cell;
        text += line_of(row);
      }
    }
  }
  return text;
}

Result<TuningSet> read_text(std::string_view text) { return Reader().read(text); }

}  // namespace opmux::tuner
