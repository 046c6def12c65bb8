// Swaps a plugin's file, and the symbolic link to it, while it is checked and loaded.
//
// usage: race_test file|sealed LOADS CHECKED OTHER
//
// The digest of CHECKED is allowed, that of OTHER is not. Every load uses new files with unique
// bytes, because identical bytes are opened only once and code stays mapped; fifty loads per
// process.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "plugin/open/loader.hpp"
#include "plugin/trust/checked_file.hpp"
#include "registry/registry.hpp"

namespace fs = std::filesystem;

namespace {

constexpr int kLoadsOfProcess = 50;
enum Stage { constructed, asked };
std::array<std::atomic<int>, 2> ran[2];  // Indexed by plugin and stage.

}  // namespace

extern "C" __attribute__((visibility("default"))) void race_ran(int which, int stage) {
  ++ran[which][static_cast<size_t>(stage)];
}

namespace {

/// Results of the loads of a process, sent to its parent through a pipe.
struct Counts {
  int loaded = 0, refused = 0, swapped = 0, wrong = 0, other_constructed = 0;
};

/// Atomically exchanges two names until stopped.
class Swapper {
 public:
  explicit Swapper(const fs::path& folder) : folder_(folder), thread_([this] { swap_all(); }) {}
  ~Swapper() {
    stop_ = true;
    thread_.join();
  }

 private:
  void exchange(const char* a, const char* b) {
    renameat2(AT_FDCWD, (folder_ / a).c_str(), AT_FDCWD, (folder_ / b).c_str(), RENAME_EXCHANGE);
  }
  void swap_all() {
    while (!stop_) {
      exchange("file.so", "spare.so");
      exchange("link.so", "other_link.so");
    }
  }

  fs::path folder_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// A copy that differs from all others in the bytes after the library.
void copy_with_mark(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to);
  std::ofstream(to, std::ios::app) << to.native();
}

void load_once(const fs::path& folder, opmux::PluginOptions options, const fs::path& checked,
               const fs::path& other, Counts& counts) {
  fs::create_directory(folder);
  copy_with_mark(checked, folder / "file.so");
  copy_with_mark(other, folder / "spare.so");
  options.digests = {opmux::plugin::check_file(folder / "file.so", {}).value().digest};
  const auto settings = opmux::plugin::trust_settings(options);
  fs::create_symlink("file.so", folder / "link.so");
  fs::create_symlink("spare.so", folder / "other_link.so");
  opmux::registry::Registry registry;
  const int before = ran[1][constructed];
  const Swapper swapper(folder);
  const auto report = opmux::plugin::Loader(registry, settings).load(folder / "link.so");
  counts.other_constructed += ran[1][constructed] - before;
  if (report.state == opmux::plugin::PluginReport::State::loaded) {
    ++counts.loaded;
  } else {
    ++(report.reason == "plugin.swapped" ? counts.swapped : counts.refused);
  }
}

Counts load_many(const fs::path& checked, const fs::path& other, bool sealed) {
  Counts counts;
  std::string name = fs::temp_directory_path() / "opmux_race_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return counts;
  opmux::PluginOptions options;
  options.trust = opmux::Trust::digest;
  options.sealed = sealed;
  for (int i = 0; i < kLoadsOfProcess; ++i) {
    load_once(fs::path(name) / std::to_string(i), options, checked, other, counts);
  }
  counts.wrong = ran[1][asked];
  fs::remove_all(name);
  return counts;
}

Counts in_process(const fs::path& checked, const fs::path& other, bool sealed) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::exit(2);
  const pid_t child = fork();
  if (child == 0) {
    const Counts counts = load_many(checked, other, sealed);
    const bool told = write(ends[1], &counts, sizeof(counts)) == sizeof(counts);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Counts counts;
  int status = 0;
  const bool told = read(ends[0], &counts, sizeof(counts)) == sizeof(counts);
  waitpid(child, &status, 0);
  close(ends[0]);
  if (!told || status != 0) counts.wrong = 1;
  return counts;
}

/// Whether only checked code ran.
bool race(const fs::path& checked, const fs::path& other, int loads, bool sealed) {
  Counts all;
  for (int i = 0; i < loads; i += kLoadsOfProcess) {
    const Counts some = in_process(checked, other, sealed);
    all.loaded += some.loaded, all.refused += some.refused, all.swapped += some.swapped;
    all.wrong += some.wrong, all.other_constructed += some.other_constructed;
  }
  std::printf(
      "%s: %d loaded, %d refused when checked, %d swapped after that; unchecked files: "
      "%d constructors ran, %d were asked\n",
      sealed ? "sealed memory" : "the file", all.loaded, all.refused, all.swapped,
      all.other_constructed, all.wrong);
  const bool none_ran = all.wrong == 0 && all.other_constructed == 0;
  return none_ran && all.loaded > 0 && all.refused + all.swapped > 0;
}

}  // namespace

int main(int, char** argv) {
  return race(argv[3], argv[4], std::atoi(argv[2]), std::string_view(argv[1]) == "sealed") ? 0 : 1;
}
