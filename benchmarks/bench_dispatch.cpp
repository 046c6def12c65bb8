// Measures the cost of dispatch relative to a bare indirect call and to c10. See --help.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "figures.hpp"
#include "processor.hpp"
#include "rounds.hpp"

namespace opmux::bench {
namespace {

struct Settings {
  bool json = false, check = false;
  double slack = 1;
  int rounds = 15;
};

int usage(int code) {
  std::puts(
      "usage: bench_dispatch [--json] [--check] [--slack F] [--rounds N]\n"
      "Measures calls through opmux against a bare call through a volatile function pointer and\n"
      "against c10, PyTorch's dispatcher. The subjects alternate; a figure is the median of N\n"
      "rounds. The limits of ratios to the bare call depend on the store-forwarding latency of\n"
      "this processor.\n"
      "  --json      prints the figures as JSON\n"
      "  --check     exits with 1 if a figure misses its limit\n"
      "  --slack F   multiplies every limit (for noisy machines)\n"
      "  --rounds N  number of rounds, at least 9; default 15");
  return code;
}

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      settings.json = true;
    } else if (word == "--check") {
      settings.check = true;
    } else if (word == "--slack" && i + 1 < argc) {
      settings.slack = std::atof(argv[++i]);
    } else if (word == "--rounds" && i + 1 < argc) {
      settings.rounds = std::max(9, std::atoi(argv[++i]));
    } else {
      return false;
    }
  }
  return settings.slack > 0;
}

void print_json(const std::vector<Figure>& figures, double slack) {
  std::printf("{\"processor\": \"%s\", \"store_forwarding\": %.2f, \"figures\": [\n",
              processor_name().c_str(), store_forwarding_latency());
  for (size_t i = 0; i < figures.size(); ++i) {
    const Figure& f = figures[i];
    std::printf(
        "  {\"name\": \"%s\", \"value\": %.3f, \"limit\": %.3f, \"unit\": \"%s\", "
        "\"at_least\": %s, \"holds\": %s}%s\n",
        f.name.c_str(), f.value, f.limit, f.unit.c_str(), f.at_least ? "true" : "false",
        f.holds(slack) ? "true" : "false", i + 1 < figures.size() ? "," : "");
  }
  std::puts("]}");
}

void print_table(const std::vector<Figure>& figures, double slack) {
  std::printf("%s, store forwarding takes as long as %.1f additions\n", processor_name().c_str(),
              store_forwarding_latency());
  for (const Figure& f : figures) {
    std::printf("%-4s %-52s %9.2f %-3s limit %s %.2f  %s\n", f.holds(slack) ? "ok" : "MISS",
                f.name.c_str(), f.value, f.unit.c_str(), f.at_least ? ">=" : "<=", f.limit,
                f.note.c_str());
  }
}

int main_with(const Settings& settings) {
  const std::vector<Figure> figures = all_figures(settings.rounds);
  settings.json ? print_json(figures, settings.slack) : print_table(figures, settings.slack);
  const auto misses = [&](const Figure& figure) { return !figure.holds(settings.slack); };
  return settings.check && std::ranges::any_of(figures, misses) ? 1 : 0;
}

}  // namespace
}  // namespace opmux::bench

int main(int argc, char** argv) try {
  opmux::bench::Settings settings;
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) return opmux::bench::usage(0);
  if (!opmux::bench::parse(argc, argv, settings)) return opmux::bench::usage(2);
  return opmux::bench::main_with(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_dispatch: %s\n", error.what());
  return 1;
}
