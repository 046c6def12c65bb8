#include "plugin/elf_rules.hpp"

#include <algorithm>
#include <filesystem>

#include <opmux/abi.h>

#include "plugin/bounded_read.hpp"
#include "plugin/elf_image.hpp"

namespace opmux::plugin {
namespace {

Status judge_query(const ElfFacts& facts, const std::string& path) {
  if (std::ranges::find(facts.query, uint32_t{OPMUX_ABI_MAJOR}) != facts.query.end()) return {};
  if (!facts.query.empty()) {
    return malformed("abi_major",
                     base::concat(path, " was built for plugin ABI version ", facts.query.front(),
                                  "; this build supports version ", OPMUX_ABI_MAJOR));
  }
  return malformed("no_query", base::concat(path, " exports no ", OPMUX_PLUGIN_SYMBOL,
                                            ": it is a library, but not an opmux plugin"));
}

Status judge_exports(const ElfFacts& facts, const std::string& path,
                     std::vector<Status>& warnings) {
  if (!facts.interposes.empty()) {
    return bad_elf("interposes", base::concat(path, " exports ", base::join(facts.interposes, ", "),
                                              "; a plugin may export only its query function"));
  }
  if (facts.executable_stack) {
    return bad_elf("stack", base::concat(path,
                                         " would make the stacks of this process executable; "
                                         "link it with -z noexecstack"));
  }
  if (facts.exports == 0) return {};
  const bool all = facts.exports <= facts.exported.size();
  warnings.push_back(bad_elf(
      "exports",
      base::concat(path, " exports ", facts.exports, " symbols besides its query function: ",
                   base::join(facts.exported, ", "), all ? "" : ", ...")));
  return {};
}

/// Checks that only trusted users can change a folder. A folder that does not exist is accepted if
/// only trusted users can create it.
Status judge_folder(const std::string& folder, std::string_view reason, std::string_view what,
                    const ElfRules& rules, std::vector<Status>& warnings) {
  const Result<OpenedPath> opened = open_folder(folder, rules.paths);
  const Status missing = opened ? Status() : opened.error();
  const bool harmless = missing.reason() == "plugin.path";
  if (opened ? opened->problems.empty() : harmless) return {};
  const Status& why = opened ? opened->problems.front() : missing;
  Status refused = bad_elf(reason, base::concat(what, " is not trusted: ", why.message()));
  if (rules.paths_enforced) return refused;
  warnings.push_back(std::move(refused));
  return {};
}

Status judge_run_path(const std::string& entry, const std::string& path, const ElfRules& rules,
                      std::vector<Status>& warnings) {
  const std::optional<std::string> beside = origin_folder(entry, path);
  if (beside && rules.sealed) {
    return bad_elf("origin", base::concat(path, " looks for libraries in ", entry,
                                          ", but a sealed copy in memory has no folder"));
  }
  const std::string& folder = beside ? *beside : entry;
  if (!folder.starts_with('/') || folder.find('$') != folder.npos) {
    return bad_elf("run_path", base::concat(path, " looks for libraries in '", entry,
                                            "'; only absolute folders and $ORIGIN are trusted"));
  }
  return judge_folder(folder, "run_path", base::concat("the run path '", entry, "' of ", path),
                      rules, warnings);
}

Status judge_needed(const std::string& name, const std::string& path, const ElfRules& rules,
                    std::vector<Status>& warnings) {
  if (name.find('/') == name.npos) return {};
  if (!name.starts_with('/') || name.find('$') != name.npos) {
    return bad_elf("needed", base::concat(path, " needs '", name,
                                          "', which is neither a plain name nor an absolute path"));
  }
  return judge_folder(std::filesystem::path(name).parent_path(), "needed",
                      base::concat("the library '", name, "' that ", path, " needs"), rules,
                      warnings);
}

}  // namespace

std::optional<std::string> origin_folder(std::string_view entry, const std::string& path) {
  for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
    if (!entry.starts_with(word)) continue;
    const std::string_view rest = entry.substr(word.size());
    if (!rest.empty() && !rest.starts_with('/')) continue;
    return base::concat(std::filesystem::path(path).parent_path().string(), rest);
  }
  return {};
}

Status judge_elf(const ElfFacts& facts, const std::string& path, const ElfRules& rules,
                 std::vector<Status>& warnings) {
  if (Status bad = judge_query(facts, path); !bad.ok()) return bad;
  if (Status bad = judge_exports(facts, path, warnings); !bad.ok()) return bad;
  for (const std::string& name : facts.needed) {
    if (Status bad = judge_needed(name, path, rules, warnings); !bad.ok()) return bad;
  }
  for (const std::string& entry : facts.run_path) {
    if (Status bad = judge_run_path(entry, path, rules, warnings); !bad.ok()) return bad;
  }
  return {};
}

}  // namespace opmux::plugin
