#include "result.hpp"

#include <cstdarg>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace opmux::bench {
namespace {

constexpr double kShortest = 20'000;  // ns; the ratio of shorter calls has no limit
constexpr double kRatio = 1.02, kOverhead = 60;

std::string text(const char* format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  std::vsnprintf(line, sizeof line, format, list);
  va_end(list);
  return line;
}

nlohmann::json json_of(const Result& result) {
  nlohmann::json json = {
      {"operator", result.point.op},          {"point", result.point.label},
      {"tokens", result.point.tokens},        {"hidden", result.point.hidden},
      {"dtype", name_of(result.point.dtype)}, {"implementation", result.implementation}};
  if (!result.skipped.empty()) {
    json["skipped"] = result.skipped;
    return json;
  }
  json["ns"] = result.ns;
  json["chosen"] = result.chosen;
  json["allocations"] = result.allocations;
  json["engine_allocations"] = result.engine_allocations;
  if (!result.bare.empty()) {
    json["bare"] = {{"name", result.bare},
                    {"ns", result.bare_ns},
                    {"ratio", result.ratio},
                    {"pairs", result.pairs},
                    {"limited", result.limited()}};
  }
  return json;
}

}  // namespace

bool Result::limited() const { return skipped.empty() && !bare.empty() && bare_ns >= kShortest; }

// Reference implementations may allocate.
bool Result::reference() const { return implementation.find("/reference.") != std::string::npos; }

std::vector<std::string> misses(const Report& report, double slack) {
  std::vector<std::string> found;
  if (report.overhead_ns > kOverhead * slack) {
    found.push_back(text("dispatch of an empty kernel: +%.1f ns (limit %.0f)", report.overhead_ns,
                         kOverhead * slack));
  }
  const double limit = 1 + (kRatio - 1) * slack;
  for (const Result& result : report.results) {
    const std::string where = result.point.name() + ", " + result.implementation;
    if (result.limited() && result.ratio > limit) {
      found.push_back(text("%s: %.3f x %s (limit %.3f)", where.c_str(), result.ratio,
                           result.bare.c_str(), limit));
    }
    if (result.skipped.empty() && result.allocations > 0 && !result.reference()) {
      found.push_back(text("%s: %.2f allocations per call", where.c_str(), result.allocations));
    }
  }
  return found;
}

std::string to_json(const Report& report) {
  nlohmann::json all = nlohmann::json::array();
  for (const Result& result : report.results) all.push_back(json_of(result));
  return nlohmann::json{{"overhead_ns", report.overhead_ns}, {"results", std::move(all)}}.dump(1) +
         "\n";
}

std::string to_table(const Report& report) {
  std::string table;
  std::string last;
  for (const Result& result : report.results) {
    if (result.point.name() != last) table += result.point.name() + "\n";
    last = result.point.name();
    table += text("  %c %-36s ", result.chosen ? '*' : ' ', result.implementation.c_str());
    if (!result.skipped.empty()) {
      table += "skipped: " + result.skipped + "\n";
      continue;
    }
    table += text("%12.2f us", result.ns / 1000);
    if (!result.bare.empty()) table += text("  %.3f x %s", result.ratio, result.bare.c_str());
    if (result.engine_allocations > 0) {
      table += text("  (the engine allocates %.0f times per call)", result.engine_allocations);
    }
    table += "\n";
  }
  return table;
}

}  // namespace opmux::bench
