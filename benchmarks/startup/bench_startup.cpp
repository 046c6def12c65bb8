// Measures how long a runtime takes to start with 64 plugins of 32 implementations each: the first
// time, when each plugin is probed in a separate process, and later with cached verdicts. Each
// start runs in a new process.
//
// usage: bench_startup [--check [SLACK]]
//
//   --check   exits with 1 if a start with cached verdicts takes more than 50 ms times SLACK (1)

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/opmux.hpp>

namespace {

namespace fs = std::filesystem;
constexpr int kPlugins = 64, kRounds = 7;
constexpr double kMostCachedMs = 50.0;

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Starts a runtime in this process and prints the milliseconds until it was created and until all
/// plugins were loaded, and the numbers of plugins and implementations.
int start_once(const std::string& folder) {
  opmux::Options options;
  options.backends = false;
  options.environment = {{"OPMUX_STATE_DIR", folder + "/state"}};
  options.plugins.folders = {folder + "/plugins"};
  const auto start = std::chrono::steady_clock::now();
  opmux::Runtime runtime = opmux::Runtime::create(options).value();
  const double created = since(start);
  runtime.plugins().warm_up();
  const double warm = since(start);
  size_t loaded = 0, implementations = 0;
  for (const opmux::PluginInfo& plugin : runtime.plugins().list()) {
    if (!plugin.loaded || plugin.path == "built in") continue;
    ++loaded;
    implementations += plugin.implementations.size();
  }
  std::cout << created << " " << warm << " " << loaded << " " << implementations << "\n";
  return 0;
}

struct Start {
  double created = 0, warm = 0;
  size_t plugins = 0, implementations = 0;
};

/// Runs start_once() in a new process; all zero if that fails.
Start start_elsewhere(const std::string& program, const std::string& folder) {
  Start start;
  const std::string command = "'" + program + "' --once '" + folder + "'";
  FILE* said = popen(command.c_str(), "r");
  if (said == nullptr) return start;
  if (std::fscanf(said, "%lf %lf %zu %zu", &start.created, &start.warm, &start.plugins,
                  &start.implementations) != 4) {
    start = {};
  }
  pclose(said);
  return start;
}

void write_plugins(const std::string& folder) {
  std::ifstream file(OPMUX_STARTUP_PLUGIN, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  fs::create_directories(folder + "/plugins");
  for (int i = 0; i < kPlugins; ++i) {
    const std::string name = {'z', 'z', static_cast<char>('0' + i / 10),
                              static_cast<char>('0' + i % 10)};
    std::string copy = bytes;
    for (size_t at = copy.find("zz00"); at != std::string::npos; at = copy.find("zz00", at + 4)) {
      copy.replace(at, 4, name);
    }
    const std::string path = (folder + "/plugins/").append(name).append(".so");
    std::ofstream(path, std::ios::binary) << copy;
    fs::permissions(path, fs::perms(0755));
  }
}

int measure(const std::string& program, const std::string& folder, double limit_ms) {
  const Start cold = start_elsewhere(program, folder);
  std::vector<Start> cached;
  for (int i = 0; i < kRounds; ++i) cached.push_back(start_elsewhere(program, folder));
  std::ranges::sort(cached, {}, &Start::created);
  const Start& middle = cached[kRounds / 2];
  std::printf("%zu plugins, %zu implementations\n", middle.plugins, middle.implementations);
  std::printf("cold, each plugin is probed:     %8.1f ms\n", cold.created);
  std::printf("cached verdicts:                 %8.1f ms  (median of %d; limit %.0f)\n",
              middle.created, kRounds, kMostCachedMs);
  std::printf("cached, all plugins loaded:      %8.1f ms\n", middle.warm);
  if (middle.plugins != kPlugins) return std::puts("not all plugins were loaded"), 1;
  return middle.created > limit_ms ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string_view> arguments(words + 1, words + count);
  if (arguments.size() == 2 && arguments[0] == "--once") {
    return start_once(std::string(arguments[1]));
  }
  std::string folder = (fs::temp_directory_path() / "opmux-startup-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  write_plugins(folder);
  const bool check = !arguments.empty() && arguments[0] == "--check";
  const double slack = arguments.size() > 1 ? std::atof(words[2]) : 1.0;
  const double limit_ms = check ? kMostCachedMs * slack : std::numeric_limits<double>::max();
  const int status = measure(fs::read_symlink("/proc/self/exe").string(), folder, limit_ms);
  fs::remove_all(folder);
  return status;
}
