#include "plugin/trust/dependencies.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/crypto.hpp"
#include "base/line_records.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"

namespace opmux::plugin {
namespace {

constexpr size_t kLargestConfiguration = 1 << 20;

Status refuse(std::string_view reason, std::string_view path, std::string_view name,
              std::string_view why) {
  return bad_elf(reason, base::concat(path, " needs the library '", name, "', which ", why));
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// Appends the entries of `folder` whose names match a pattern, in the order of their names.
void append_matches(const std::string& folder, const std::string& pattern,
                    std::vector<std::string>& paths) {
  std::vector<std::string> names;
  if (base::read_names(folder + "/", names) != 0) return;
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0)
      paths.push_back(base::concat(folder, "/", name));
  }
}

/// The paths that match a pattern such as "/etc/ld.so.conf.d/*.conf". Unlike glob(), which in glibc
/// 2.36 frees a name twice if there is not enough memory, it throws std::bad_alloc then.
std::vector<std::string> matches(std::string_view pattern) {
  std::vector<std::string> paths{""};
  while (pattern.starts_with('/')) {
    pattern.remove_prefix(1);
    const std::string part(pattern.substr(0, pattern.find('/')));
    pattern.remove_prefix(part.size());
    std::vector<std::string> longer;
    for (const std::string& path : paths) {
      if (part.find_first_of("*?[") != part.npos)
        append_matches(path, part, longer);
      else
        longer.push_back(base::concat(path, "/", part));
    }
    paths = std::move(longer);
  }
  return paths;
}

/// Adds the folders of a configuration file of the dynamic loader and the files that it includes.
void read_configuration(const std::string& path, int depth, std::vector<std::string>& folders) {
  const Result<std::string> text = base::read_given(path, kLargestConfiguration);
  if (!text || depth == 0) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = base::take_until(rest, '\n');
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.starts_with('/')) folders.emplace_back(line);
    if (!line.starts_with("include ")) continue;
    line.remove_prefix(line.find('/') == line.npos ? line.size() : line.find('/'));
    for (const std::string& included : matches(line)) {
      read_configuration(included, depth - 1, folders);
    }
  }
}

/// Whether a file is in or below a folder of the system and only root can change it.
bool belongs_to_system(const std::string& real_path) {
  static const std::vector<std::string> folders = system_folders();
  const bool inside = std::ranges::any_of(
      folders, [&](const std::string& folder) { return real_path.starts_with(folder + "/"); });
  if (!inside) return false;
  const Result<OpenedPath> opened = open_file(real_path, PathRules{{0}, {}});
  return opened && opened->problems.empty();
}

/// One run of check_libraries().
class Search {
 public:
  Search(const LibraryRules& rules, std::vector<Status>& warnings)
      : rules_(rules), warnings_(warnings) {}

  /// A library or plugin whose needed libraries are looked for. `outer` needs it.
  struct Place {
    const ElfFacts& facts;
    const std::string& path;
    const Place* outer;
  };

  Status visit(const Place& place) {
    for (const std::string& name : place.facts.needed) {
      if (Status bad = need(name, place); !bad.ok()) return bad;
    }
    return {};
  }
  std::vector<CheckedLibrary> take() { return std::move(found_); }

 private:
  Status need(const std::string& name, const Place& place) {
    if (std::ranges::find(found_, name, &CheckedLibrary::name) != found_.end()) return {};
    if (std::ranges::find(open_, name) != open_.end()) {
      return refuse("needed", place.path, name, "needs that file in turn");
    }
    Result<std::optional<std::string>> where = locate(name, place);
    if (!where) return where.error();
    if (!*where) return {};
    Result<OpenedPath> opened = open_file(**where, rules_.elf.paths);
    if (!opened) return opened.error();
    if (belongs_to_system(opened->real_path)) return {};
    if (Status bad = judge_path(name, place, opened->problems); !bad.ok()) return bad;
    if (found_.size() + open_.size() >= kMostLibraries) {
      return refuse("needed", place.path, name,
                    base::concat("is one of more than ", kMostLibraries));
    }
    CheckedLibrary library;
    library.name = name;
    library.path = std::move(opened->real_path);
    if (rules_.contents) {
      library.descriptor = std::move(opened->descriptor);
      if (Status bad = take_contents(place, library); !bad.ok()) return bad;
    }
    found_.push_back(std::move(library));
    return {};
  }

  /// The file that a name denotes; nullopt if the system's folders decide.
  Result<std::optional<std::string>> locate(const std::string& name, const Place& place) const {
    using Found = std::optional<std::string>;
    if (name.find('/') != name.npos) {
      const bool plain = name.starts_with('/') && name.find('$') == name.npos && exists(name);
      return plain ? Found(name) : Found();
    }
    // The dynamic loader also looks in old run paths (RPATH) of those that need the library.
    for (const Place* from = &place; from != nullptr; from = from->outer) {
      for (const std::string& entry : from->facts.run_path) {
        const std::optional<std::string> beside = origin_folder(entry, from->path);
        const std::string& folder = beside ? *beside : entry;
        if (!folder.starts_with('/') || folder.find('$') != folder.npos) continue;
        if (const std::string file = base::concat(folder, "/", name); exists(file)) {
          return Found(file);
        }
        if (!matches(base::concat(folder, "/glibc-hwcaps/*/", name)).empty()) {
          return refuse("needed", from->path, name,
                        base::concat("is only in ", folder,
                                     "/glibc-hwcaps; put it into the run path itself"));
        }
      }
    }
    return Found();
  }

  Status judge_path(const std::string& name, const Place& place,
                    const std::vector<Status>& problems) {
    for (const Status& problem : problems) {
      Status about(problem.code(), std::string(problem.reason()),
                   base::concat("the library '", name, "' that ", place.path,
                                " needs: ", problem.message()));
      if (rules_.elf.paths_enforced) return about;
      warnings_.push_back(std::move(about));
    }
    return {};
  }

  Status take_contents(const Place& place, CheckedLibrary& library) {
    const Result<CheckedBytes> read =
        read_checked(library.descriptor.get(), library.path, rules_.max_bytes);
    if (!read) return read.error();
    library.identity = read->identity;
    library.digest = base::sha256_hex(read->bytes.view());
    const Result<ElfFacts> facts = read_elf(read->bytes.view());
    if (!facts) {
      return {facts.error().code(), std::string(facts.error().reason()),
              base::concat(library.path, ": ", facts.error().message())};
    }
    if (Status bad = judge_library(place, library, *facts); !bad.ok()) return bad;
    open_.push_back(library.name);
    Status bad = visit({*facts, library.path, &place});
    open_.pop_back();
    return bad;
  }

  Status judge_library(const Place& place, const CheckedLibrary& library, const ElfFacts& facts) {
    const bool by_path = library.name.find('/') != library.name.npos;
    if (!by_path && facts.soname != library.name) {
      return refuse("soname", place.path, library.name,
                    base::concat("has the SONAME '", facts.soname,
                                 "'; link it with -soname, so that the checked file is used"));
    }
    if (facts.executable_stack) {
      return refuse("stack", place.path, library.name,
                    "would make the stacks of this process executable");
    }
    return judge_files(facts, library.path, rules_.elf, warnings_);
  }

  const LibraryRules& rules_;
  std::vector<Status>& warnings_;
  std::vector<CheckedLibrary> found_;
  std::vector<std::string> open_;  ///< names of the libraries whose needs are being visited
};

}  // namespace

std::vector<std::string> system_folders(const std::string& configuration) {
  std::vector<std::string> all{"/lib", "/lib64", "/usr/lib", "/usr/lib64"};
  constexpr int kDeepestInclude = 8;
  read_configuration(configuration, kDeepestInclude, all);
  return all;
}

Result<std::vector<CheckedLibrary>> check_libraries(const ElfFacts& plugin, const std::string& path,
                                                    const LibraryRules& rules,
                                                    std::vector<Status>& warnings) {
  Search search(rules, warnings);
  if (Status bad = search.visit({plugin, path, nullptr}); !bad.ok()) return bad;
  return search.take();
}

std::string digest_with(const std::string& own, const std::vector<CheckedLibrary>& libraries) {
  std::vector<std::string> lines;
  for (const CheckedLibrary& library : libraries) {
    if (library.digest.empty()) continue;
    lines.push_back(base::concat(library.digest, " ", library.name, "\n"));
  }
  if (lines.empty() || own.empty()) return own;
  std::ranges::sort(lines);
  const std::string text =
      base::concat("opmux-plugin-with-libraries 1\n", own, "\n", base::join(lines, ""));
  return base::sha256_hex(std::as_bytes(std::span(text)));
}

}  // namespace opmux::plugin
