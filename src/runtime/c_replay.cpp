#include <cerrno>
#include <cstring>

#include <opmux/replay.h>
#include <opmux/replay.hpp>

#include "base/text.hpp"
#include "base/whole_file.hpp"
#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"
#include "runtime/c_policy.hpp"
#include "runtime/c_text.hpp"

using opmux::Status;
using opmux::runtime::ask;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::view_of;

namespace {

Status write_smaller_call(const std::string& path, const std::string& bytes) {
  if (path.empty() || bytes.empty() || opmux::base::replace_file(path, bytes, 0600)) return {};
  return {opmux::Code::unavailable, "replay.out",
          opmux::base::concat("cannot write ", path, ": ", std::strerror(errno))};
}

}  // namespace

int32_t opmux_recordings(opmux_runtime* runtime, char* buffer, size_t capacity, size_t* size,
                         opmux_error* error) {
  return ask(runtime, {buffer, capacity, size}, error, [](auto& cpp) { return cpp.recordings(); });
}

int32_t opmux_replay(opmux_runtime* runtime, opmux_str path, const opmux_replay_options* options,
                     char* buffer, size_t capacity, size_t* size, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    opmux_replay_options from{};
    if (options != nullptr) {
      Status bad = opmux::runtime::read_sized(*options, sizeof(from), "options", from);
      if (!bad.ok()) return bad;
    }
    opmux::ReplayOptions read;
    read.minimize = (from.flags & OPMUX_REPLAY_MINIMIZE) != 0;
    auto ids = opmux::runtime::read_list(from.implementations, "options.implementations");
    if (!ids) return ids.error();
    read.implementations = *std::move(ids);
    const auto report = runtime->cpp.replay(std::string(view_of(path)), read);
    if (!report) return report.error();
    Status written = write_smaller_call(std::string(view_of(from.out)), report->smaller);
    if (!written.ok()) return written;
    return opmux::runtime::Destination{buffer, capacity, size}.write(to_json(*report));
  });
}
