#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

namespace opmux::bench {
namespace {

constexpr double kWidth = 300, kHeight = 210, kLeft = 48, kTop = 30, kRight = 12, kBottom = 30;
constexpr int kColumns = 4;

struct Spot {
  double tokens, ns;
};
using Line = std::vector<Spot>;

// The lines of one operator's panel, by "implementation dtype".
using Panel = std::map<std::string, Line>;

std::string colour_of(const std::string& name) {
  static const std::map<std::string, std::string> colours = {
      {"reference", "#8c8c8c"}, {"simd", "#1f77b4"},   {"onednn", "#d62728"},
      {"openblas", "#2ca02c"},  {"opencl", "#9467bd"}, {"torch", "#000000"}};
  const size_t slash = name.find('/') + 1;
  const auto found = colours.find(name.substr(slash, name.find('.') - slash));
  return found == colours.end() ? "#bc8f00" : found->second;
}

bool dashed(const std::string& line) { return line.ends_with(" f32"); }

// Keeps only the largest hidden size of each operator.
std::map<std::string, Panel> panels_of(const nlohmann::json& report) {
  std::map<std::string, int64_t> largest;
  for (const auto& result : report.at("results")) {
    int64_t& hidden = largest[result.at("operator")];
    hidden = std::max(hidden, result.at("hidden").get<int64_t>());
  }
  std::map<std::string, Panel> panels;
  for (const auto& result : report.at("results")) {
    const std::string op = result.at("operator");
    if (!result.contains("ns") || result.at("hidden").get<int64_t>() != largest[op]) continue;
    const std::string line = result.at("implementation").get<std::string>() + " " +
                             result.at("dtype").get<std::string>();
    panels[op][line].push_back({result.at("tokens"), result.at("ns")});
  }
  return panels;
}

// The powers of ten that enclose all values of a panel.
struct Range {
  double low = 1e300, high = 0;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    low = std::floor(std::log10(low));
    high = std::max(low + 1, std::ceil(std::log10(high)));
  }
  double at(double value) const { return (std::log10(value) - low) / (high - low); }
};

std::string time_text(double power) {
  static const char* const names[] = {"1 ns", "10 ns", "100 ns", "1 us", "10 us", "100 us",
                                      "1 ms", "10 ms", "100 ms", "1 s",  "10 s"};
  const auto index = static_cast<size_t>(std::clamp(power, 0.0, 10.0));
  return names[index];
}

class Drawing {
 public:
  void panel(const std::string& op, const Panel& panel, double left, double top) {
    left_ = left + kLeft;
    top_ = top + kTop;
    x_ = {}, y_ = {};
    for (const auto& [name, line] : panel) {
      for (const Spot& spot : line) x_.add(spot.tokens), y_.add(spot.ns);
    }
    x_.widen();
    y_.widen();
    out_ << "<text x='" << left_ << "' y='" << top + 20 << "' font-weight='bold'>" << op
         << "</text>\n";
    axes();
    for (const auto& [name, line] : panel) draw(name, line);
  }

  void legend(double width) {
    const char* const names[] = {"reference", "simd", "onednn", "openblas", "opencl", "torch"};
    double x = kLeft;
    for (const char* name : names) {
      out_ << "<circle cx='" << x << "' cy='14' r='5' fill='" << colour_of(name) << "'/><text x='"
           << x + 9 << "' y='18'>" << name << "</text>\n";
      x += 90;
    }
    out_ << "<text x='" << std::min(x, width - 200)
         << "' y='18' fill='#555'>time of a call over tokens; solid bf16, dashed f32</text>\n";
  }

  std::string svg(double width, double height) const {
    std::ostringstream all;
    all << "<svg xmlns='http://www.w3.org/2000/svg' width='" << width << "' height='" << height
        << "' font-family='sans-serif' font-size='11'>\n<rect width='100%' height='100%' "
           "fill='white'/>\n"
        << out_.str() << "</svg>\n";
    return all.str();
  }

 private:
  static constexpr double kInner = kWidth - kLeft - kRight, kTall = kHeight - kTop - kBottom;
  double px(double tokens) const { return left_ + x_.at(tokens) * kInner; }
  double py(double ns) const { return top_ + (1 - y_.at(ns)) * kTall; }

  void axes() {
    for (double power = y_.low; power <= y_.high; ++power) {
      const double y = py(std::pow(10, power));
      out_ << "<line x1='" << left_ << "' x2='" << left_ + kInner << "' y1='" << y << "' y2='" << y
           << "' stroke='#ddd'/><text x='" << left_ - 4 << "' y='" << y + 4
           << "' text-anchor='end' fill='#555'>" << time_text(power) << "</text>\n";
    }
    for (double power = x_.low; power <= x_.high; ++power) {
      const double x = px(std::pow(10, power));
      out_ << "<text x='" << x << "' y='" << top_ + kTall + 15
           << "' text-anchor='middle' fill='#555'>" << std::pow(10, power) << "</text>\n";
    }
  }

  void draw(const std::string& name, const Line& line) {
    out_ << "<g stroke='" << colour_of(name) << "' fill='" << colour_of(name) << "'><title>" << name
         << "</title><polyline fill='none' stroke-width='1.5'"
         << (dashed(name) ? " stroke-dasharray='4 3'" : "") << " points='";
    for (const Spot& spot : line) out_ << px(spot.tokens) << ',' << py(spot.ns) << ' ';
    out_ << "'/>";
    for (const Spot& spot : line) {
      out_ << "<circle cx='" << px(spot.tokens) << "' cy='" << py(spot.ns) << "' r='2'/>";
    }
    out_ << "</g>\n";
  }

  std::ostringstream out_;
  Range x_, y_;
  double left_ = 0, top_ = 0;
};

}  // namespace

std::string picture_of(const std::string& json) {
  const std::map<std::string, Panel> panels = panels_of(nlohmann::json::parse(json));
  Drawing drawing;
  const double width = kColumns * kWidth;
  drawing.legend(width);
  int at = 0;
  for (const auto& [op, panel] : panels) {
    const int column = at % kColumns, row = at / kColumns;
    drawing.panel(op, panel, column * kWidth, 24 + row * kHeight);
    ++at;
  }
  const int rows = (at + kColumns - 1) / kColumns;
  return drawing.svg(width, 24 + rows * kHeight);
}

}  // namespace opmux::bench
