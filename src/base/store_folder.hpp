#pragma once

#include <string>

#include <opmux/status.hpp>

namespace opmux::base {

/// The folder for persistent data: `state_dir`/store if `state_dir` is given, else
/// $XDG_STATE_HOME/opmux, else ~/.local/state/opmux. Empty if no such folder is known, or if the
/// process runs with raised privileges and `state_dir` is not given.
std::string store_folder(const std::string& state_dir);

/// The folder for data of running processes: `state_dir`/run if `state_dir` is given, else
/// $XDG_RUNTIME_DIR/opmux, else /dev/shm/opmux-UID.
std::string run_folder(const std::string& state_dir);

/// Creates a folder and its parents with access for this user only (0700). Fails with
/// "store.folder" if the folder cannot be created or written to, belongs to another user, or is
/// accessible to others.
Status make_private_folder(const std::string& path);

}  // namespace opmux::base
