#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/opmux.hpp>

#include "cli/json.hpp"

namespace opmux::cli::migrate {

/// Where the meaning of a setting of another system is in opmux.
enum class Place : uint8_t {
  policy,       ///< in the policy that the command writes
  environment,  ///< an environment variable, because a policy cannot set it
  code,         ///< something that a program or a plugin says when it registers
  none,         ///< no equal in opmux
  unknown,      ///< the other system does not know it either
};

/// One setting and what became of it.
struct Note {
  std::string setting, value;
  Place place = Place::policy;
  std::string text;  ///< the key, variable or call that replaces it, or why there is none
};

/// A setting as the other system wrote it.
struct Setting {
  std::string name, value;
};

using Words = std::vector<std::string>;

/// The words between separators, without blanks around them and without empty ones.
Words split(std::string_view text, char separator);
/// With small ASCII letters.
std::string lowered(std::string_view text);
/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// The policy that grows while settings are read, and a note about each of them. Every rule is
/// checked alone when it is added, so that a note can say why one has no equal here. Not
/// thread-safe.
class Migration {
 public:
  explicit Migration(Runtime& runtime);

  /// Options of the command: tokens for names of kernels of the other system.
  std::map<std::string, std::string, std::less<>> kernels;

  void note(const Setting& setting, Place place, std::string text);
  /// Sets a variable and notes that; `setting` may be one of several that end in one variable.
  void set_variable(const Setting& setting, std::string name, std::string value,
                    std::string_view why = "");
  /// Sets a part of OPMUX_DUMP, which several settings of vllm-plugin-FL make together.
  enum class DumpPart : uint8_t { operators, layers, steps };
  void set_dump(const Setting& setting, DumpPart part, std::string value,
                std::string_view why = "");
  /// Sets a key of `defaults`; a later source replaces the value of an earlier one.
  void set_default(const Setting& setting, const std::string& key, Json value,
                   std::string_view why = "");
  /// Sets a threshold of the top-level `breaker`.
  void set_breaker(const Setting& setting, const std::string& key, Json value);

  /// Adds a rule if it would apply here, and notes it. Otherwise notes the reason of the refusal as
  /// no equal and returns false. Equal rules are kept once; a rule replaces one of the same name.
  bool add_rule(const Setting& setting, Json rule, std::string_view why = "");
  /// Whether a policy of this rule alone would apply; `why` is the reason if it would not.
  bool applies(const Json& rule, std::string* why = nullptr) const;

  bool has_operator(std::string_view name) const;
  const std::vector<OperatorInfo>& operators() const { return operators_; }

  /// The policy in YAML with the notes as comments. `sources` says what was read.
  std::string policy(std::string_view sources) const;
  Json to_json(std::string_view sources) const;
  const std::vector<Note>& notes() const { return notes_; }
  /// Whether a setting has no equal or is unknown.
  bool incomplete() const;
  /// Why the whole policy would not apply here; empty if it would.
  std::string refusal() const;

 private:
  std::string body() const;
  std::string check(const std::string& text) const;

  Runtime* runtime_;
  std::vector<OperatorInfo> operators_;
  Json defaults_ = Json::object(), breaker_ = Json::object();
  std::vector<Json> rules_;
  std::vector<std::pair<std::string, std::string>> variables_;
  Words dump_ = {"*", "", ""};
  std::vector<Note> notes_;
};

}  // namespace opmux::cli::migrate
