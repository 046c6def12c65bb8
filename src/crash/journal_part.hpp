#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opmux::crash {

/// A plugin file or a backend. Its constructors, `init` and `is_available` run outside of every
/// implementation, so the journal names it like an implementation while they run. `id` and `build`
/// contain no spaces, commas, backslashes and '@'.
struct JournalPart {
  std::string id, build;
  bool reference = false;  ///< belongs to the reference, which is never quarantined
};

/// "plugin:NAME" with the file's name. The build is its digest, so that a changed file is not
/// affected.
JournalPart plugin_part(std::string_view path, std::string_view digest);

/// "backend:NAME"; the build is that of its implementations.
JournalPart backend_part(std::string_view name, std::string_view build, bool reference);

/// The number of a part in hazard slots, the same for the life of the process. Also writes its name
/// to the process's journal, if there is one, so call it before code of the part runs. Returns 0,
/// which blames no part, if the process has named kMostParts others. Thread-safe.
uint32_t note_part(const JournalPart& part);

}  // namespace opmux::crash
