#pragma once

#include <string>

#include <opmux/status.hpp>

namespace opmux::base {

/// Where is kept what outlives a process: `state_dir`/store if that is given, else
/// $XDG_STATE_HOME/opmux, else ~/.local/state/opmux. Empty if there is no such place, and for
/// processes with raised privileges.
std::string store_folder(const std::string& state_dir);

/// Where processes keep what concerns them while they run: `state_dir`/run if that is given, else
/// $XDG_RUNTIME_DIR/opmux, else /dev/shm/opmux-UID.
std::string run_folder(const std::string& state_dir);

/// Makes a folder, and those above it, for this user alone (0700). Fails with "store.folder" if it
/// cannot be made or written to, is somebody else's, or open to others.
Status make_private_folder(const std::string& path);

}  // namespace opmux::base
