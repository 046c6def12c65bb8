#include "policy/rules/environment.hpp"

#include <arpa/inet.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "base/system/cpu_features.hpp"
#include "base/text.hpp"
#include "policy/conditions/expression_compiler.hpp"
#include "policy/rules/token.hpp"
#include "schema/facts.hpp"
#include "schema/schema.hpp"

namespace opmux::policy {
namespace {

constexpr std::string_view kPrefix = "OPMUX_", kBackendPrefix = "OPMUX_BACKEND_";
constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warning", "error"};
constexpr std::array<std::string_view, 3> kJournals{"off", "on", "with_handler"};

Status refuse(const Variable& variable, std::string_view why) {
  return {Code::invalid_argument, "environment.value",
          base::concat(variable.name, "='", variable.value, "': ", why)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = text.find(separator); at != text.npos; at = text.find(separator)) {
    parts.emplace_back(trimmed(text.substr(0, at)));
    text.remove_prefix(at + 1);
  }
  parts.emplace_back(trimmed(text));
  return parts;
}

Status read_boolean(const Variable& variable, bool& into) {
  const std::string& value = variable.value;
  const bool yes = value == "1" || value == "true" || value == "on";
  const bool no = value == "0" || value == "false" || value == "off";
  if (!yes && !no) return refuse(variable, "allowed values are 0, 1, true, false, on, off");
  into = yes;
  return {};
}

Status read_tokens(const Variable& variable, std::string_view text, char separator,
                   std::vector<std::string>& into) {
  into = split(text, separator);
  for (const std::string& word : into) {
    if (const auto token = Token::parse(word); !token) {
      return refuse(variable, token.error().message());
    }
  }
  return {};
}

Status read_vendors(const Variable& variable, std::vector<std::string>& into) {
  into = split(variable.value, ',');
  for (const std::string& name : into) {
    if (schema::valid_name(name)) continue;
    return refuse(variable, base::concat("'", name,
                                         "' is not a vendor name; names are separated by "
                                         "commas and have the form [a-z][a-z0-9_]*"));
  }
  return {};
}

/// Parses "op=a|b;op2=c".
Status read_orders(const Variable& variable,
                   std::map<std::string, std::vector<std::string>>& into) {
  for (const std::string& part : split(variable.value, ';')) {
    const size_t equals = part.find('=');
    const std::string op(trimmed(std::string_view(part).substr(0, equals)));
    if (equals == part.npos || !schema::valid_operator_name(op)) {
      return refuse(variable, base::concat("'", part,
                                           "' is not of the form operator=token|token; "
                                           "operators are separated by ';'"));
    }
    std::vector<std::string> order;
    const std::string_view list = std::string_view(part).substr(equals + 1);
    if (Status status = read_tokens(variable, list, '|', order); !status.ok()) return status;
    if (!into.emplace(op, std::move(order)).second) {
      return refuse(variable, base::concat("'", op, "' has more than one order"));
    }
  }
  return {};
}

Status read_word(const Variable& variable, std::span<const std::string_view> words,
                 std::string& into) {
  if (std::find(words.begin(), words.end(), variable.value) == words.end()) {
    return refuse(variable, base::concat("allowed values are ", base::join(words, ", "),
                                         base::suggestion(variable.value, words)));
  }
  into = variable.value;
  return {};
}

Status read_number(const Variable& variable, int lowest, int highest, int& into) {
  const std::string& value = variable.value;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (whole && into >= lowest && into <= highest) return {};
  return refuse(variable, base::concat("allowed values are ", lowest, " to ", highest));
}

Status read_paths(const Variable& variable, char separator, std::vector<std::string>& into) {
  into = split(variable.value, separator);
  if (std::find(into.begin(), into.end(), "") == into.end()) return {};
  return refuse(variable, base::concat("an entry between '", separator, "' is empty"));
}

/// Parses names and patterns of processor features. Each must match a known feature.
Status read_features(const Variable& variable, std::vector<std::string>& into) {
  into = split(variable.value, ',');
  CpuFeatures known = known_cpu_features();
  known.insert(base::cpu_features().begin(), base::cpu_features().end());
  for (const std::string& pattern : into) {
    const auto matches = [&](const std::string& feature) { return glob_match(pattern, feature); };
    if (std::any_of(known.begin(), known.end(), matches)) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    return refuse(variable,
                  base::concat("'", pattern,
                               "' is not a feature of a processor or a pattern such as "
                               "avx512*; names are those in /proc/cpuinfo, separated by commas",
                               base::suggestion(pattern, names)));
  }
  return {};
}

/// Parses "[inputs:]FOLDER".
Status read_record(const Variable& variable, Environment& into) {
  constexpr std::string_view kInputs = "inputs";
  into.record = variable.value;
  const size_t colon = into.record.find(':');
  if (colon != into.record.npos && into.record.find('/') > colon) {
    const std::string word = into.record.substr(0, colon);
    if (word != kInputs) {
      return refuse(variable, base::concat("'", word, "' before the colon is not known",
                                           base::suggestion(word, std::span(&kInputs, 1)),
                                           "; allowed values are FOLDER and inputs:FOLDER"));
    }
    into.record_inputs = true;
    into.record.erase(0, colon + 1);
  }
  if (into.record.empty()) return refuse(variable, "the folder is missing");
  return {};
}

template <std::string Environment::* Text>
Status keep_text(const Variable& variable, Environment& into) {
  into.*Text = variable.value;
  return {};
}

struct Known {
  std::string_view name;
  Status (*read)(const Variable& variable, Environment& into);
};

constexpr std::array<Known, 23> kKnown{{
    {"OPMUX_CONFIG", keep_text<&Environment::config>},
    {"OPMUX_LOCKFILE", keep_text<&Environment::lockfile>},
    {"OPMUX_MODE", [](const Variable& v, Environment& e) { return read_word(v, kModes, e.mode); }},
    {"OPMUX_PREFER", [](const Variable& v,
                        Environment& e) { return read_tokens(v, v.value, ',', e.policy.prefer); }},
    {"OPMUX_STRICT",
     [](const Variable& v, Environment& e) { return read_boolean(v, e.policy.strict.emplace()); }},
    {"OPMUX_PER_OP",
     [](const Variable& v, Environment& e) { return read_orders(v, e.policy.per_op); }},
    {"OPMUX_ALLOW_VENDORS",
     [](const Variable& v, Environment& e) { return read_vendors(v, e.policy.allow_vendors); }},
    {"OPMUX_DENY_VENDORS",
     [](const Variable& v, Environment& e) { return read_vendors(v, e.policy.deny_vendors); }},
    {"OPMUX_PLUGIN_PATH",
     [](const Variable& v, Environment& e) { return read_paths(v, ':', e.plugin_path); }},
    {"OPMUX_PYTHON_PLUGINS",
     [](const Variable& v, Environment& e) { return read_paths(v, ',', e.python_plugins); }},
    {"OPMUX_PLATFORM", keep_text<&Environment::platform>},
    {"OPMUX_STATE_DIR", keep_text<&Environment::state_dir>},
    {"OPMUX_STATE_PAGE",
     [](const Variable& v, Environment& e) { return read_boolean(v, e.state_page); }},
    {"OPMUX_CRASH_JOURNAL",
     [](const Variable& v, Environment& e) { return read_word(v, kJournals, e.crash_journal); }},
    {"OPMUX_RECORD", read_record},
    {"OPMUX_DUMP", keep_text<&Environment::dump>},
    {"OPMUX_TUNING", keep_text<&Environment::tuning>},
    {"OPMUX_LOG", [](const Variable& v, Environment& e) { return read_word(v, kLevels, e.log); }},
    {"OPMUX_NUM_THREADS",
     [](const Variable& v, Environment& e) { return read_number(v, 1, 1024, e.num_threads); }},
    {"OPMUX_RANK",
     [](const Variable& v, Environment& e) {
       return read_number(v, 0, schema::RankFacts::kHighest, e.rank.emplace());
     }},
    {"OPMUX_TP_SIZE",
     [](const Variable& v, Environment& e) {
       return read_number(v, 1, schema::RankFacts::kHighest, e.tp_size.emplace());
     }},
    {"OPMUX_DISABLE", [](const Variable& v, Environment& e) { return read_boolean(v, e.disable); }},
    {"OPMUX_CPU_MASK",
     [](const Variable& v, Environment& e) { return read_features(v, e.cpu_mask); }},
}};

/// The name, in lower case, of the backend that a variable enables or disables; empty if the
/// variable does not name one.
std::string backend_of(std::string_view variable) {
  if (!variable.starts_with(kBackendPrefix)) return {};
  std::string name(variable.substr(kBackendPrefix.size()));
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') return {};
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return schema::valid_name(name) ? name : std::string();
}

bool is_port(std::string_view text) {
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number != 0;
}

bool is_address(const std::string& text) {
  in6_addr address;
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_protocol(std::string_view text) { return text == "tcp" || text == "udp" || text == "sctp"; }

/// Whether the text is a protocol, an address and a port, such as "tcp://10.0.0.11:8080".
bool is_endpoint(std::string_view text) {
  const size_t scheme = text.find("://"), colon = text.rfind(':');
  if (scheme == text.npos || colon < scheme + 3) return false;
  std::string_view host = text.substr(scheme + 3, colon - scheme - 3);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return is_protocol(text.substr(0, scheme)) && is_address(std::string(host)) &&
         is_port(text.substr(colon + 1));
}

/// Whether `rest`, the part of a name after "PORT_", is that of a port of a service: "8080_TCP" and
/// its parts "8080_TCP_PROTO", "8080_TCP_PORT" and "8080_TCP_ADDR".
bool is_port_of_service(std::string_view rest, const std::string& value) {
  const std::vector<std::string> words = split(rest, '_');
  if (words.size() < 2 || words.size() > 3 || !is_port(words[0])) return false;
  if (words[1] != "TCP" && words[1] != "UDP" && words[1] != "SCTP") return false;
  if (words.size() == 2) return is_endpoint(value);
  if (words[2] == "PROTO") return is_protocol(value);
  return words[2] == "PORT" ? is_port(value) : words[2] == "ADDR" && is_address(value);
}

/// Whether name and value have the form of a variable that Kubernetes sets in every container for a
/// service whose name begins with "opmux".
bool is_of_service(const Variable& variable) {
  constexpr std::string_view kHost = "_SERVICE_HOST", kPort = "_SERVICE_PORT", kLink = "_PORT";
  const std::string_view name = variable.name;
  if (name.ends_with(kHost) && is_address(variable.value)) return true;
  if (const size_t at = name.find(kPort); at != name.npos) {
    const std::string_view rest = name.substr(at + kPort.size());  // the name of the port
    if ((rest.empty() || rest.starts_with('_')) && is_port(variable.value)) return true;
  }
  if (name.ends_with(kLink) && is_endpoint(variable.value)) return true;
  for (size_t at = name.find("_PORT_"); at != name.npos; at = name.find("_PORT_", at + 1)) {
    if (is_port_of_service(name.substr(at + 6), variable.value)) return true;
  }
  return false;
}

Status unknown(const Variable& variable) {
  std::array<std::string_view, kKnown.size() + 1> names;
  std::transform(kKnown.begin(), kKnown.end(), names.begin(),
                 [](const Known& k) { return k.name; });
  names.back() = "OPMUX_BACKEND_<NAME>";
  return {Code::invalid_argument, "environment.unknown",
          base::concat(variable.name, " is set, but opmux has no such variable",
                       base::suggestion(variable.name, names))};
}

Status read(const Variable& variable, Environment& into) {
  const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&](const Known& k) { return k.name == variable.name; });
  if (known != kKnown.end()) return known->read(variable, into);
  const std::string backend = backend_of(variable.name);
  if (!backend.empty()) return read_boolean(variable, into.backends[backend]);
  if (!is_of_service(variable)) return unknown(variable);
  into.of_services.push_back(variable.name);
  return {};
}

}  // namespace

Result<Environment> parse_environment(const std::vector<Variable>& variables) {
  Environment environment;
  for (const Variable& variable : variables) {
    if (variable.value.empty() || !variable.name.starts_with(kPrefix)) continue;
    const size_t ignored = environment.of_services.size();
    if (Status status = read(variable, environment); !status.ok()) return status;
    if (environment.of_services.size() == ignored) environment.seen.push_back(variable);
  }
  std::sort(environment.seen.begin(), environment.seen.end(),
            [](const Variable& a, const Variable& b) { return a.name < b.name; });
  return environment;
}

std::vector<Variable> variables_of(const char* const* block) {
  std::vector<Variable> variables;
  for (; block != nullptr && *block != nullptr; ++block) {
    const std::string_view text(*block);
    const size_t equals = text.find('=');
    if (equals == text.npos || !text.starts_with(kPrefix)) continue;
    variables.push_back(
        {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  std::sort(variables.begin(), variables.end(),
            [](const Variable& a, const Variable& b) { return a.name < b.name; });
  return variables;
}

bool raised_privileges() { return getauxval(AT_SECURE) != 0; }

std::vector<Variable> process_variables(bool raised) {
  return raised ? std::vector<Variable>() : variables_of(environ);
}

}  // namespace opmux::policy
