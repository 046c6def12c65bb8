// Measures how cost and memory grow with threads, operators, shapes and processes. See --help.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../processor.hpp"
#include "scale.hpp"

namespace opmux::bench {

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

double exponent(double small, double small_value, double large, double large_value) {
  return std::log(large_value / small_value) / std::log(large / small);
}

namespace {

constexpr char kSeparator = '\t';

void write_figures(int to, const std::vector<Figure>& figures) {
  std::ostringstream text;
  for (const Figure& figure : figures) {
    text << figure.name << kSeparator << figure.value << kSeparator << figure.limit << kSeparator
         << figure.unit << kSeparator << figure.at_least << kSeparator << figure.note << '\n';
  }
  const std::string all = text.str();
  for (size_t written = 0; written < all.size();) {
    const ssize_t count = ::write(to, all.data() + written, all.size() - written);
    if (count <= 0) throw std::runtime_error("cannot write the figures");
    written += static_cast<size_t>(count);
  }
}

std::vector<Figure> read_figures(int from) {
  std::string all;
  char part[4096];
  for (ssize_t count = 0; (count = ::read(from, part, sizeof part)) > 0;) {
    all.append(part, static_cast<size_t>(count));
  }
  std::vector<Figure> figures;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string value, limit, at_least;
    Figure figure;
    std::getline(fields, figure.name, kSeparator);
    std::getline(fields, value, kSeparator);
    std::getline(fields, limit, kSeparator);
    std::getline(fields, figure.unit, kSeparator);
    std::getline(fields, at_least, kSeparator);
    std::getline(fields, figure.note, kSeparator);
    figure.value = std::stod(value);
    figure.limit = std::stod(limit);
    figure.at_least = at_least == "1";
    figures.push_back(std::move(figure));
  }
  return figures;
}

struct Group {
  std::string_view name;
  std::vector<Figure> (*measure)();
};
constexpr Group kGroups[] = {
    {"plans", plans_of_threads},       {"counters", counters_of_threads},
    {"operators", many_operators},     {"shapes", many_shapes},
    {"processes", starting_processes}, {"reloads", reloading_processes},
    {"foreign-files", foreign_files},
};

struct Settings {
  bool check = false;
  double slack = 1;
  std::string only;
};

int usage(int code) {
  std::puts(
      "usage: bench_scale [--check] [--slack F] [--only GROUP]\n"
      "Measures how time and memory grow with threads, operators, shapes and processes. Each "
      "group\n"
      "runs in a separate process.\n"
      "  --check       exits with 1 if a figure misses its limit\n"
      "  --slack F     multiplies every limit (for noisy machines)\n"
      "  --only GROUP  measures one group: plans, counters, operators, shapes, processes, "
      "reloads,\n"
      "                foreign-files");
  return code;
}

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--check") {
      settings.check = true;
    } else if (word == "--slack" && i + 1 < argc) {
      settings.slack = std::atof(argv[++i]);
    } else if (word == "--only" && i + 1 < argc) {
      settings.only = argv[++i];
    } else {
      return false;
    }
  }
  const bool known = settings.only.empty() ||
                     std::ranges::find(kGroups, settings.only, &Group::name) != std::end(kGroups);
  return known && settings.slack > 0;
}

int main_with(const Settings& settings) {
  std::printf("%s\n", processor_name().c_str());
  bool all_hold = true;
  for (const Group& group : kGroups) {
    if (!settings.only.empty() && group.name != settings.only) continue;
    for (const Figure& figure : in_child(group.measure)) {
      const bool holds = figure.holds(settings.slack);
      all_hold = all_hold && holds;
      std::printf("%-4s %-58s %9.2f %-4s limit %s %.2f  %s\n", holds ? "ok" : "MISS",
                  figure.name.c_str(), figure.value, figure.unit.c_str(),
                  figure.at_least ? ">=" : "<=", figure.limit, figure.note.c_str());
    }
    std::fflush(stdout);
  }
  return settings.check && !all_hold ? 1 : 0;
}

}  // namespace

std::vector<Figure> in_child(const std::function<std::vector<Figure>()>& measure) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("cannot create a pipe");
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    ::close(ends[0]);
    try {
      write_figures(ends[1], measure());
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench_scale: %s\n", error.what());
      ::_exit(1);
    }
  }
  ::close(ends[1]);
  std::vector<Figure> figures = read_figures(ends[0]);
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error("a measurement failed");
  }
  return figures;
}

}  // namespace opmux::bench

int main(int argc, char** argv) try {
  opmux::bench::Settings settings;
  if (argc > 1 && std::string_view(argv[1]) == "--help") return opmux::bench::usage(0);
  if (!opmux::bench::parse(argc, argv, settings)) return opmux::bench::usage(2);
  return opmux::bench::main_with(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_scale: %s\n", error.what());
  return 1;
}
