#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/padded.hpp"

namespace opmux::cli {
namespace {

struct DiffOptions {
  std::string from, to;
  bool json = false;
};

using Changes = std::vector<ChoiceChange>;

/// The highest priority that an implementation has in any call: that of a hint if it is higher.
int best_priority(const Json& implementation) {
  int best = implementation.at("priority");
  for (const Json& hint : implementation.value("hints", Json::array())) {
    best = std::max(best, hint.at("priority").get<int>());
  }
  return best;
}

/// The implementation with the highest priority of each operator, among the available ones of a
/// saved `opmux list --json`.
std::map<std::string, const Json*> first_choices(const Json& list) {
  std::map<std::string, const Json*> chosen;
  for (const Json& op : list.at("operators")) {
    const Json*& best = chosen[op.at("name")];
    for (const Json& each : op.at("implementations")) {
      if (!each.at("available").get<bool>()) continue;
      // Implementations of equal priority are ordered by id.
      if (best == nullptr || best_priority(each) > best_priority(*best)) best = &each;
    }
  }
  return chosen;
}

std::string id_of(const Json* implementation) {
  return implementation == nullptr ? "" : implementation->at("id").get<std::string>();
}

std::string why(const Json& list, const std::string& op, const std::string& id) {
  for (const Json& each : list.at("operators")) {
    if (each.at("name") != op) continue;
    for (const Json& implementation : each.at("implementations")) {
      if (implementation.at("id") != id) continue;
      const auto reason = implementation.at("reason").get<std::string>();
      std::string text = id;
      text += reason.empty() ? " has priority " : " is not available: ";
      text += reason.empty() ? std::to_string(best_priority(implementation)) : reason;
      return text;
    }
    return id + " does not exist";
  }
  return op + " does not exist";
}

Changes compare_builds(const Json& from, const Json& to) {
  Changes changes;
  const auto before = first_choices(from), after = first_choices(to);
  for (const auto& [op, implementation] : before) {
    const auto other = after.find(op);
    const std::string first = id_of(implementation);
    const std::string second = other == after.end() ? "" : id_of(other->second);
    if (first == second) continue;
    changes.push_back({op, "always", first, second, "in the second file " + why(to, op, first)});
  }
  for (const auto& [op, implementation] : after) {
    if (before.contains(op)) continue;
    changes.push_back(
        {op, "always", "", id_of(implementation), "the first file has no such operator"});
  }
  return changes;
}

/// "provider.variant" of an id; the operator is printed in another column.
std::string short_name(const std::string& id) {
  return id.empty() ? "nothing" : id.substr(id.find('/') + 1);
}

void print(const Changes& changes) {
  size_t from = 0, to = 0, op = 0;
  for (const ChoiceChange& change : changes) {
    op = std::max(op, change.op.size());
    from = std::max(from, short_name(change.from).size());
    to = std::max(to, short_name(change.to).size());
  }
  for (const ChoiceChange& change : changes) {
    std::cout << padded(change.op, op + 2) << padded(short_name(change.from), from) << " -> "
              << padded(short_name(change.to), to + 2) << change.because << "\n";
    if (change.when != "always")
      std::cout << std::string(op + 2, ' ') << "when " << change.when << "\n";
  }
  std::cout << (changes.empty() ? "no choice differs"
                                : std::to_string(changes.size()) +
                                      (changes.size() == 1 ? " choice differs" : " choices differ"))
            << "\n";
}

Json json_of(const Changes& changes) {
  Json list = Json::array();
  for (const ChoiceChange& change : changes) {
    list.push_back({{"op", change.op},
                    {"when", change.when},
                    {"from", change.from},
                    {"to", change.to},
                    {"because", change.because}});
  }
  return {{"changes", list}};
}

enum class FileKind { policy, lockfile, build };

FileKind kind_of(const std::string& text) {
  if (text.starts_with("opmux lockfile ")) return FileKind::lockfile;
  const Json read = Json::parse(text, nullptr, false);
  return read.is_object() && read.contains("operators") ? FileKind::build : FileKind::policy;
}

Result<Changes> compare_policies(const DiffOptions& options, const std::string& from,
                                 const std::string& to) {
  auto runtime = Runtime::create();
  if (!runtime) return runtime.error();
  return runtime->policy().compare(from, options.from, to, options.to);
}

Result<Changes> compare(const DiffOptions& options, const std::string& from,
                        const std::string& to) {
  const FileKind kind = kind_of(from);
  if (kind != kind_of(to)) {
    return Status(
        Code::invalid_argument, "cli.diff",
        "the files are of different kinds; give two policies, two lockfiles, or two outputs "
        "of `opmux list --json`");
  }
  if (kind == FileKind::policy) return compare_policies(options, from, to);
  if (kind == FileKind::build) {
    try {
      return compare_builds(Json::parse(from), Json::parse(to));
    } catch (const Json::exception& error) {
      return Status(Code::invalid_argument, "cli.diff", error.what());
    }
  }
  const auto first = Lockfile::parse(from, options.from);
  if (!first) return first.error();
  const auto second = Lockfile::parse(to, options.to);
  if (!second) return second.error();
  return differences(*first, *second);
}

int diff(const DiffOptions& options) {
  const auto from = read_text(options.from);
  const auto to = from ? read_text(options.to) : from;
  if (!to) return kWrongUse;
  const auto changes = compare(options, *from, *to);
  if (!changes) return wrong_use(changes.error().message());
  if (options.json) {
    std::cout << json_of(*changes).dump() << "\n";
  } else {
    print(*changes);
  }
  return changes->empty() ? kFine : kFound;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand(
      "diff", "Show which decisions differ between two policies, lockfiles or builds, and why");
  command->add_option("A", options->from, "a policy, a lockfile, or output of `opmux list --json`")
      ->required();
  command->add_option("B", options->to, "a second file of the same kind")->required();
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/diff.json");
  command->callback([options, &action] { action = [options] { return diff(*options); }; });
}

}  // namespace opmux::cli
