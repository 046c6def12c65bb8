#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/padded.hpp"

namespace opmux::cli {
namespace {

struct HealthOptions {
  std::string file;
  bool json = false;
};

std::string word(const Json& of, const char* key) { return of.at(key).get<std::string>(); }

size_t widest(const Json& list, const char* key) {
  size_t width = 0;
  for (const Json& each : list) width = std::max(width, word(each, key).size());
  return width;
}

/// Prints backends or devices with their health and its reason.
void print_parts(const Json& list, const char* name) {
  for (const Json& each : list) {
    const std::string reason = word(each, "reason");
    std::cout << "  " << padded(word(each, name), widest(list, name) + 2) << word(each, "health")
              << (reason.empty() ? "" : ": " + reason) << "\n";
  }
}

std::string seconds(uint64_t milliseconds) {
  return std::to_string(milliseconds / 1000) + "." + std::to_string(milliseconds % 1000 / 100) +
         " s";
}

void print_breaker(const Json& breaker, size_t width) {
  const std::string state = word(breaker, "state"), why = word(breaker, "why");
  std::cout << "  " << padded(word(breaker, "implementation"), width + 2) << padded(state, 11)
            << word(breaker, "what");
  if (!why.empty()) std::cout << ": " << why;
  if (state == "open") {
    std::cout << "; next probe in " << seconds(breaker.at("next_probe_ms").get<uint64_t>());
  } else if (state == "closed") {
    std::cout << ": watched, " << breaker.at("failures_in_a_row") << " consecutive failures";
  }
  std::cout << "\n";
}

void print_shadow(const Json& one, size_t width) {
  std::cout << "  " << padded(word(one, "implementation"), width + 2) << one.at("compared")
            << " compared, " << one.at("mismatches") << " wrong";
  for (const auto& [reason, calls] : one.at("skipped").items())
    std::cout << ", " << calls << " not compared: " << reason;
  std::cout << "\n";
  if (one.contains("last"))
    std::cout << "    " << word(one.at("last"), "what") << ": " << word(one.at("last"), "text")
              << "\n";
}

void print_policy(const Json& health) {
  const Json& without = health.at("without_candidates");
  if (!without.empty()) std::cout << "operators without candidates\n";
  for (const Json& each : without) {
    const std::string when = word(each, "when");
    std::cout << "  " << word(each, "op") << (when.empty() ? "" : " where ") << when
              << (each.at("allowed").get<bool>() ? ", as the policy allows" : "") << ": "
              << word(each, "reason") << "\n";
  }
  const Json& policy = health.at("policy");
  if (policy.at("refused") == 0) return;
  std::cout << "refused policies\n  " << policy.at("refused")
            << " so far, the last one: " << word(policy, "last_refusal") << "\n";
}

void print(const Json& health) {
  std::cout << word(health, "verdict") << "\n";
  print_parts(health.at("backends"), "name");
  print_parts(health.at("devices"), "device");
  const Json& breakers = health.at("breakers");
  if (!breakers.empty()) std::cout << "breakers\n";
  for (const Json& breaker : breakers) print_breaker(breaker, widest(breakers, "implementation"));
  if (!health.contains("shadow")) return;  // saved by an earlier version
  const Json& compared = health.at("shadow").at("implementations");
  if (!compared.empty()) std::cout << "shadow check\n";
  for (const Json& one : compared) print_shadow(one, widest(compared, "implementation"));
  if (health.contains("without_candidates")) print_policy(health);
}

/// The health report of a runtime in this environment, or a saved one.
std::optional<std::string> text_of(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (!file.empty()) return read_text(file);
  const std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return {};
  return to_json(runtime->health().report());
}

int health(const HealthOptions& options) {
  const auto text = text_of(options.file);
  if (!text) return kWrongUse;
  try {
    const Json found = Json::parse(*text);
    const std::string verdict = word(found, "verdict");
    if (options.json) {
      std::cout << found.dump() << "\n";
    } else {
      print(found);
    }
    return verdict == "healthy" ? kFine : kFound;
  } catch (const Json::exception&) {
    return wrong_use(options.file + " is not a health report in JSON");
  }
}

}  // namespace

void add_health(CLI::App& app, Action& action) {
  auto options = std::make_shared<HealthOptions>();
  CLI::App* command =
      app.add_subcommand("health", "Show the health of backends, devices and circuit breakers");
  command->add_option(
      "FILE", options->file,
      "a health report in JSON that a service returned; - is standard input; default: "
      "the report of a new process");
  command->add_flag("--json", options->json, "print JSON as described in docs/schemas/health.json");
  command->callback([options, &action] { action = [options] { return health(*options); }; });
}

}  // namespace opmux::cli
