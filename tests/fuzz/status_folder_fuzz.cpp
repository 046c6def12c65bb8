// A folder of status files in which another program of the user may have put anything: files with
// arbitrary bytes, modes and names, links, pipes and folders. Reading it must not hang, follow a
// link or report a process that does not hold its file; sweeping it must remove only status files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <opmux/state_page.hpp>

#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "byte_source.hpp"
#include "status/status_file.hpp"

namespace {

namespace fs = std::filesystem;
using opmux::fuzz::ByteSource;

void insist(bool holds) {
  if (!holds) std::abort();
}

/// A private folder in memory, which is removed at exit.
const std::string& state_folder() {
  static const std::string* const kFolder = [] {
    std::string name = "/dev/shm/opmux-fuzz-XXXXXX";
    insist(::mkdtemp(name.data()) != nullptr);
    std::atexit([] { fs::remove_all(state_folder()); });
    return new std::string(name);
  }();
  return *kFolder;
}

void put_file(const std::string& path, ByteSource& source, std::string_view text) {
  const bool sealed = source.pick(2) == 0;
  const opmux::base::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  insist(static_cast<bool>(file));
  insist(opmux::base::write_all(file.get(), sealed ? opmux::base::checked_line(text) : text));
  if (source.rarely()) (void)::fchmod(file.get(), source.take<uint16_t>() & 0777);
}

void put_entry(const std::string& run, ByteSource& source, std::string_view text) {
  const bool status_name = !source.rarely();
  std::string path =
      run + "/" + (status_name ? "state-" : "other-") + std::to_string(source.take<uint8_t>());
  if (source.rarely()) path += opmux::status_file::kNewStatusFile;
  switch (source.pick(8)) {
    case 0: (void)::mkfifo(path.c_str(), 0600); return;
    case 1: (void)::symlink("/dev/zero", path.c_str()); return;
    case 2: (void)::mkdir(path.c_str(), 0700); return;
    default: break;
  }
  std::error_code failed;
  if (!fs::exists(fs::symlink_status(path, failed))) put_file(path, source, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteSource source(data, size);
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string run = state_folder() + "/run";
  fs::remove_all(run);
  insist(::mkdir(run.c_str(), 0700) == 0);
  for (uint32_t left = 1 + source.pick(4); left > 0; --left) {
    put_entry(run, source, all.substr(source.take<uint8_t>() % (size + 1)));
  }
  // No process holds the lock of any of these files, so none is alive.
  insist(opmux::process_states(state_folder()).empty());
  insist(!opmux::process_state(::getpid(), state_folder()));
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(run, failed)) {
    const auto page = opmux::open_state_page(entry.path());
    insist(!page || !page->alive);
  }
  opmux::status_file::sweep_state_pages(run);
  return 0;
}
