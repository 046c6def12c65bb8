// Measures calls of the standard operators for every implementation. See --help.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "grid.hpp"
#include "measuring.hpp"
#include "picture.hpp"

namespace opmux::bench {
namespace {

constexpr int kPairs = 101;

struct Settings {
  bool check = false;
  double slack = 1;
  std::string json, picture, drawn, op;
};

int usage(int code) {
  std::puts(
      "usage: bench_ops [--check] [--slack F] [--op NAME] [--json FILE] [--picture FILE]\n"
      "       bench_ops --draw REPORT.json --picture FILE\n"
      "Measures every available implementation of every operator, on one thread, over a grid of\n"
      "tokens, hidden sizes and dtypes. If an implementation uses an engine (oneDNN, OpenBLAS),\n"
      "its calls alternate with direct calls of that engine on the same memory, and the median\n"
      "ratio is printed. A star marks the implementation that a plain call chooses.\n"
      "  --check         measures a short grid and exits with 1 if a dispatched call of 20 us or\n"
      "                  more takes longer than 1.02 x the engine, if dispatch of an empty kernel\n"
      "                  takes more than 60 ns, or if a call after the first one allocates\n"
      "  --slack F       multiplies the allowed overhead (for noisy machines)\n"
      "  --op NAME       measures this operator only\n"
      "  --json FILE     writes all figures\n"
      "  --picture FILE  draws the figures as SVG\n"
      "  --draw FILE     draws an existing report and measures nothing");
  return code;
}

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      settings.check = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (word == "--slack")
      settings.slack = std::atof(value.c_str());
    else if (word == "--op")
      settings.op = value;
    else if (word == "--json")
      settings.json = value;
    else if (word == "--picture")
      settings.picture = value;
    else if (word == "--draw")
      settings.drawn = value;
    else
      return false;
  }
  return settings.slack > 0 && (settings.drawn.empty() || !settings.picture.empty());
}

void write(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  if (!(out << text) || !out.flush()) throw std::runtime_error("cannot write " + file);
}

std::string read(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Report measure(const Settings& settings) {
  Runtime runtime = Runtime::create().value();
  Measuring measuring(runtime, kPairs);
  Report report;
  for (const Point& point : grid(settings.check ? Size::check : Size::full)) {
    if (!settings.op.empty() && point.op != settings.op) continue;
    const size_t before = report.results.size();
    measuring.measure(point, report);
    const Report latest{
        {report.results.begin() + static_cast<ptrdiff_t>(before), report.results.end()}};
    std::fputs(to_table(latest).c_str(), stdout);
    std::fflush(stdout);
  }
  if (report.results.empty()) throw std::runtime_error("no points for operator " + settings.op);
  report.overhead_ns = no_op_overhead();
  return report;
}

int main_with(const Settings& settings) {
  if (!settings.drawn.empty()) {
    write(settings.picture, picture_of(read(settings.drawn)));
    return 0;
  }
  const Report report = measure(settings);
  std::printf("dispatch of an empty kernel: +%.1f ns\n", report.overhead_ns);
  if (!settings.json.empty()) write(settings.json, to_json(report));
  if (!settings.picture.empty()) write(settings.picture, picture_of(to_json(report)));
  const std::vector<std::string> missed = misses(report, settings.slack);
  for (const std::string& miss : missed) std::printf("MISS %s\n", miss.c_str());
  if (missed.empty()) std::puts("ok   every limit holds");
  return settings.check && !missed.empty() ? 1 : 0;
}

}  // namespace
}  // namespace opmux::bench

int main(int argc, char** argv) try {
  opmux::bench::Settings settings;
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) return opmux::bench::usage(0);
  if (!opmux::bench::parse(argc, argv, settings)) return opmux::bench::usage(2);
  return opmux::bench::main_with(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_ops: %s\n", error.what());
  return 1;
}
