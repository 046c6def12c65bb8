#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/argument_text.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/lock_header.hpp"

namespace opmux::cli {
namespace {

struct LockOptions {
  std::vector<std::string> calls;
  std::string calls_file, output, header, name_space = "opmux_lock", check;
  bool json = false;
};

/// Decides one call, such as "rms_norm x=bf16[32,4096] weight=bf16[4096]".
Status decide_call(const Runtime& runtime, const std::string& call) {
  std::istringstream words(call);
  std::string word;
  words >> word;
  const auto op = runtime.op(word);
  if (!op) return op.error();
  ArgumentTexts texts(*op);
  while (words >> word) {
    if (Status bad = texts.read(word); !bad.ok()) return bad;
  }
  return op->decide_arguments(texts.arguments()).error();
}

/// The calls of the command line, then the lines of the file; # starts a comment.
std::optional<std::vector<std::string>> calls_of(const LockOptions& options) {
  std::vector<std::string> calls = options.calls;
  if (options.calls_file.empty()) return calls;
  const auto text = read_text(options.calls_file);
  if (!text) return {};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") != std::string::npos) calls.push_back(line);
  }
  return calls;
}

int check_lock(const Runtime& runtime, const LockOptions& options) {
  const auto lock = Lockfile::read(options.check);
  if (!lock) return wrong_use(lock.error().message());
  const Status fits = runtime.lockfile().check(*lock, options.check);
  if (options.json) {
    std::cout << Json{{"fits", fits.ok()}, {"why", fits.message()}}.dump() << "\n";
  } else if (fits.ok()) {
    const size_t count = lock->choices.size();
    std::cout << options.check << " matches this runtime, " << count
              << (count == 1 ? " choice\n" : " choices\n");
  } else {
    std::cout << fits.message() << "\n";
  }
  return fits.ok() ? kFine : kFound;
}

Json json_of(const Lockfile& lock) {
  Json list = Json::array();
  for (const LockedChoice& choice : lock.choices) {
    list.push_back({{"op", choice.op},
                    {"when", choice.when},
                    {"implementation", choice.implementation},
                    {"build_id", choice.build_id},
                    {"schema_hash", choice.schema_hash}});
  }
  return {{"policy_hash", lock.policy_hash}, {"digest", lock.digest()}, {"choices", list}};
}

/// Prints an error and returns false if the file cannot be written.
bool write_header(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (file << text && file.flush()) return true;
  wrong_use("cannot write " + path);
  return false;
}

int write_lock(const Lockfile& lock, const LockOptions& options) {
  if (!options.header.empty() &&
      !write_header(options.header, header_of(lock, options.name_space))) {
    return kWrongUse;
  }
  if (!options.output.empty()) {
    if (const Status bad = lock.write(options.output); !bad.ok()) return wrong_use(bad.message());
  }
  if (options.json) {
    std::cout << json_of(lock).dump() << "\n";
  } else if (options.output.empty() && options.header.empty()) {
    std::cout << lock.to_string();
  }
  return kFine;
}

int lock_calls(const LockOptions& options) {
  // The runtime must not freeze by the lockfile, which may be about to be replaced or may not
  // match.
  Options unfrozen;
  unfrozen.sources.freeze_at_start = false;
  const std::optional<Runtime> runtime = make_runtime(unfrozen);
  if (!runtime) return kWrongUse;
  if (!options.check.empty()) return check_lock(*runtime, options);
  const auto calls = calls_of(options);
  if (!calls) return kWrongUse;
  if (calls->empty()) {
    return wrong_use(
        "no calls were given; write them as \"rms_norm x=bf16[32,4096] weight=bf16[4096]\", or "
        "give a file with --calls");
  }
  for (const std::string& call : *calls) {
    if (const Status bad = decide_call(*runtime, call); !bad.ok()) {
      return wrong_use(call + ": " + std::string(bad.message()));
    }
  }
  return write_lock(runtime->lockfile().current(), options);
}

}  // namespace

void add_lock(CLI::App& app, Action& action) {
  auto options = std::make_shared<LockOptions>();
  CLI::App* command = app.add_subcommand(
      "lock", "Write a lockfile with the implementations that run for the given calls");
  command->add_option("CALL", options->calls,
                      "an operator with arguments, in quotes: \"softmax x=f32[32,4096]\"");
  const auto file = [&](const char* flag, std::string& into, const char* what) {
    return command->add_option(flag, into, what)->type_name("FILE");
  };
  file("--calls", options->calls_file, "file with more calls, one per line; # starts a comment");
  file("-o,--output", options->output, "write the lockfile to this file");
  CLI::Option* header =
      file("--emit-header", options->header, "write a C++ header with constants and checks");
  command
      ->add_option("--namespace", options->name_space,
                   "namespace of that header, default opmux_lock")
      ->needs(header);
  file("--check", options->check,
       "only check a lockfile; exit code 1 and the differences if it does not match")
      ->excludes("CALL")
      ->excludes("--calls")
      ->excludes("--output")
      ->excludes(header);
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/lock.json");
  command->callback([options, &action] { action = [options] { return lock_calls(*options); }; });
}

}  // namespace opmux::cli
