#include "tuner/rows_picture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <tuple>
#include <vector>

#include "base/text.hpp"
#include "tuner/measured_point.hpp"

namespace opmux::tuner {
namespace {

using tune::TuningRow;

constexpr double kWidth = 760, kHeight = 270;  // of a panel
constexpr double kLeft = 60, kRight = 190, kTop = 42, kBottom = 34;
constexpr double kInner = kWidth - kLeft - kRight, kTall = kHeight - kTop - kBottom;
/// Log ratios beyond it are drawn at the border; a factor of 64.
constexpr double kMostBits = 6;

/// Colours that are readable on white and on black.
constexpr const char* kColours[] = {"#3d85f0", "#e0702c", "#18a071", "#9a66d6",
                                    "#e0467c", "#8d8a2e", "#2aa3b8", "#a8735c"};
constexpr const char* kStyle =
    "<style>text{fill:#333}.page{fill:#fff}.grid{stroke:#ddd}.base{stroke:#777}.mark{stroke:#999}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#14171c}.grid{stroke:#333a44}"
    ".base{stroke:#999}.mark{stroke:#777}}</style>\n";

/// Rows of one cell, by their range.
struct Panel {
  std::string title, dim;
  std::map<tune::Range, std::vector<TuningRow>> ranges;
};

/// Texts of rows come from files of other users.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::vector<Panel> panels_of(const tune::TuningSet& set, std::string_view op) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Panel> panels;
  for (const tune::OperatorRows& one : set.operators) {
    if (!op.empty() && one.op != op) continue;
    for (const TuningRow& row : one.rows) {
      if (row.range.dim.empty()) continue;
      const std::string cell = text_of(row.cell);
      Panel& panel = panels[{set.machines[one.machine].hard, one.op, cell, row.range.dim}];
      panel.title = base::concat(one.op, " ", cell);
      panel.dim = row.range.dim;
      panel.ranges[row.range].push_back(row);
    }
  }
  std::vector<Panel> all;
  for (auto& [key, panel] : panels) all.push_back(std::move(panel));
  return all;
}

/// How many times as fast, as a power of two.
double bits_of(double log_ratio) {
  return std::clamp(-log_ratio / std::log(2.0), -kMostBits, kMostBits);
}

std::string factor_text(double bits) {
  std::ostringstream text;
  text << (bits < 0 ? "1/" : "") << std::exp2(std::abs(bits)) << "x";
  return text.str();
}

class Drawing {
 public:
  void draw(const Panel& panel, double top) {
    top_ = top + kTop;
    colours_.clear();
    find_limits(panel);
    text(kLeft, top + 20, escaped(panel.title), "font-weight='bold'");
    axes(panel);
    for (const auto& [range, rows] : panel.ranges) {
      for (const TuningRow& row : rows) band(range, row);
    }
    marks(panel);
    legend();
  }

  std::string svg(double height) const {
    std::ostringstream all;
    all << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << kWidth << " " << height
        << "' width='" << kWidth << "' height='" << height
        << "' font-family='sans-serif' font-size='11'>\n"
        << kStyle << "<rect class='page' width='100%' height='100%'/>\n"
        << out_.str() << "</svg>\n";
    return all.str();
  }

 private:
  void find_limits(const Panel& panel) {
    first_ = std::numeric_limits<double>::infinity();
    last_ = low_ = high_ = 0;
    for (const auto& [range, rows] : panel.ranges) {
      first_ = std::min(first_, std::log2(static_cast<double>(std::max<int64_t>(range.first, 1))));
      last_ = std::max(last_, std::log2(static_cast<double>(range.last) + 1));
      for (const TuningRow& row : rows) {
        low_ = std::min(low_, bits_of(row.high));
        high_ = std::max(high_, bits_of(row.low));
      }
    }
    low_ = std::floor(low_ - 0.1);
    high_ = std::ceil(high_ + 0.1);
  }
  double x(int64_t value) const {
    const double bits = std::log2(static_cast<double>(std::max<int64_t>(value, 1)));
    return kLeft + (bits - first_) / std::max(last_ - first_, 0.1) * kInner;
  }
  double y(double bits) const { return top_ + (high_ - bits) / (high_ - low_) * kTall; }

  void text(double at_x, double at_y, const std::string& words, const char* style = "") {
    out_ << "<text x='" << at_x << "' y='" << at_y << "' " << style << ">" << words << "</text>\n";
  }
  void line(const char* kind, double x1, double y1, double x2, double y2, const char* style = "") {
    out_ << "<line class='" << kind << "' x1='" << x1 << "' y1='" << y1 << "' x2='" << x2
         << "' y2='" << y2 << "' " << style << "/>\n";
  }

  void axes(const Panel& panel) {
    for (double bits = low_; bits <= high_; ++bits) {
      const bool is_baseline = bits == 0;
      line(is_baseline ? "base" : "grid", kLeft, y(bits), kLeft + kInner, y(bits));
      text(kLeft - 6, y(bits) + 4, factor_text(bits), "text-anchor='end'");
    }
    for (double bits = std::ceil(first_); bits <= last_; ++bits) {
      const auto value = static_cast<int64_t>(std::exp2(bits));
      line("grid", x(value), top_ + kTall, x(value), top_ + kTall + 4);
      text(x(value), top_ + kTall + 16, std::to_string(value), "text-anchor='middle'");
    }
    text(kLeft + kInner + 22, top_ + kTall + 16, escaped(panel.dim));
  }

  const char* colour_of(const std::string& id) {
    const size_t next = colours_.size() % std::size(kColours);
    return colours_.emplace(id, kColours[next]).first->second;
  }

  void band(const tune::Range& range, const TuningRow& row) {
    const char* const colour = colour_of(row.implementation.id);
    const double left = x(range.first), right = x(range.last + 1);
    const double top = y(bits_of(row.low)), bottom = y(bits_of(row.high));
    out_ << "<rect x='" << left << "' y='" << top << "' width='" << right - left << "' height='"
         << std::max(bottom - top, 1.0) << "' fill='" << colour << "' fill-opacity='0.25'/>\n"
         << "<line x1='" << left << "' x2='" << right << "' y1='" << y(bits_of(row.log_ratio))
         << "' y2='" << y(bits_of(row.log_ratio)) << "' stroke='" << colour
         << "' stroke-width='2'/>\n";
  }

  /// Lines where another implementation becomes the one to use, with its name.
  void marks(const Panel& panel) {
    std::string before;
    size_t count = 0;
    for (const auto& [range, rows] : panel.ranges) {
      const TuningRow* const row = winning_row(rows);
      const std::string& winner =
          row == nullptr ? rows.front().baseline.id : row->implementation.id;
      if (winner != before) {
        const double at = x(range.first);
        if (!before.empty()) line("mark", at, top_, at, top_ + kTall, "stroke-dasharray='4 3'");
        // Neighbours are in different lines, because narrow ranges have no room for a name.
        text(at + 3, top_ + 11 + 12 * static_cast<double>(count++ % 3), escaped(winner));
      }
      before = winner;
    }
  }

  void legend() {
    double at = top_ + 8;
    const double left = kLeft + kInner + 14;
    for (const auto& [id, colour] : colours_) {
      out_ << "<rect x='" << left << "' y='" << at - 8 << "' width='12' height='8' fill='" << colour
           << "'/>\n";
      text(left + 18, at, escaped(id));
      at += 16;
    }
    text(left, at + 4, "times as fast as the one");
    text(left, at + 18, "that is first by score");
  }

  std::ostringstream out_;
  std::map<std::string, const char*> colours_;
  double top_ = 0, first_ = 0, last_ = 0, low_ = 0, high_ = 0;  // limits in powers of two
};

}  // namespace

std::string picture_of(const tune::TuningSet& set, std::string_view op) {
  const std::vector<Panel> panels = panels_of(set, op);
  if (panels.empty()) return {};
  Drawing drawing;
  double top = 0;
  for (const Panel& panel : panels) {
    drawing.draw(panel, top);
    top += kHeight;
  }
  return drawing.svg(top);
}

}  // namespace opmux::tuner
