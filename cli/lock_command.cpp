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

/// "rms_norm x=bf16[32,4096] weight=bf16[4096]".
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

/// The calls of the command line and, behind them, the lines of a file; # starts a remark.
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
  const Status fits = runtime.check_lock(*lock, options.check);
  if (options.json) {
    std::cout << Json{{"fits", fits.ok()}, {"why", fits.message()}}.dump() << "\n";
  } else if (fits.ok()) {
    const size_t count = lock->choices.size();
    std::cout << options.check << " fits, " << count << (count == 1 ? " choice\n" : " choices\n");
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

/// False, and why printed, if the file cannot be written.
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
  // Neither by a lockfile that is about to be written anew, nor by one that does not fit.
  Options unfrozen;
  unfrozen.sources.freeze_at_start = false;
  const std::optional<Runtime> runtime = make_runtime(unfrozen);
  if (!runtime) return kWrongUse;
  if (!options.check.empty()) return check_lock(*runtime, options);
  const auto calls = calls_of(options);
  if (!calls) return kWrongUse;
  if (calls->empty()) {
    return wrong_use(
        "which calls? give them as \"rms_norm x=bf16[32,4096] weight=bf16[4096]\", or a file with "
        "--calls");
  }
  for (const std::string& call : *calls) {
    if (const Status bad = decide_call(*runtime, call); !bad.ok()) {
      return wrong_use(call + ": " + std::string(bad.message()));
    }
  }
  return write_lock(runtime->lock(), options);
}

}  // namespace

void add_lock(CLI::App& app, Action& action) {
  auto options = std::make_shared<LockOptions>();
  CLI::App* command =
      app.add_subcommand("lock", "Which implementations run for which calls, as a lockfile");
  command->add_option("CALL", options->calls,
                      "an operator with arguments, in quotes: \"softmax x=f32[32,4096]\"");
  const auto file = [&](const char* flag, std::string& into, const char* what) {
    return command->add_option(flag, into, what)->type_name("FILE");
  };
  file("--calls", options->calls_file, "more calls, one in a line; # starts a remark");
  file("-o,--output", options->output, "write the lockfile there");
  CLI::Option* header =
      file("--emit-header", options->header, "write a C++ header with constants and checks there");
  command->add_option("--namespace", options->name_space, "of that header (opmux_lock)")
      ->needs(header);
  file("--check", options->check, "only say whether a lockfile fits; exit 1 and why if not")
      ->excludes("CALL")
      ->excludes("--calls");
  command->add_flag("--json", options->json, "as docs/schemas/lock.json describes it");
  command->callback([options, &action] { action = [options] { return lock_calls(*options); }; });
}

}  // namespace opmux::cli
