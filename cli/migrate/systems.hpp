#pragma once

#include <string_view>
#include <vector>

#include "cli/migrate/migration.hpp"
#include "policy/files/problems.hpp"

// The systems whose settings `opmux migrate` reads. Each function takes the settings of one file or
// of the environment, and leaves a note about every one of them.
namespace opmux::cli::migrate {

using Settings = std::vector<Setting>;
using policy::TextNode;

/// vllm-plugin-FL: a file of a platform.
void take_vllm_fl(const TextNode& file, Migration& migration);
/// LayerZero: a policy, a file of its CONFIG dispatcher or of its HOT_RELOAD dispatcher.
void take_layerzero(const TextNode& file, Migration& migration);
/// flash-linear-attention: the attributes of a subclass of BaseBackend.
void take_fla_backend(const Settings& attributes, Migration& migration);
/// FlagTree: the names that the `spec` of a backend exports.
void take_flagtree_spec(const Settings& names, Migration& migration);
/// mllm: the fields of a PluginOpPackageDescriptor.
void take_mllm_descriptor(const Settings& fields, Migration& migration);

/// Variables of vllm-plugin-FL, LayerZero, flash-linear-attention and FlagTree; ignores the others.
/// Returns how many there were. mllm has none.
size_t take_environment(const Settings& variables, Migration& migration);
bool take_vllm_fl_variable(const Setting& variable, Migration& migration);
bool take_layerzero_variable(const Setting& variable, Migration& migration);
bool take_fla_variable(const Setting& variable, Migration& migration);
bool take_flagtree_variable(const Setting& variable, Migration& migration);

/// The settings of a shell file: `export NAME=value` or `NAME=value`, with or without quotes. Empty
/// if a line is something else.
Settings read_variables(std::string_view text);
/// The attributes, names or fields that the last three systems write in code. Empty if the text has
/// none.
Settings read_fla_backend(std::string_view text);
Settings read_flagtree_spec(std::string_view text);
Settings read_mllm_descriptor(std::string_view text);

/// The value of a key of a map; nullptr if it has none.
const TextNode* value_of(const TextNode& map, std::string_view key);
/// A value as one line, for notes.
std::string text_of_value(const TextNode& node);
/// The words of a list, or those of a text between `separator`s.
Words words_of(const TextNode& node, char separator);

/// The function in a line of a table of settings.
using Take = void (*)(const Setting&, Migration&);
/// A note with the same text for every value.
template <Place place, const char* text>
void say(const Setting& setting, Migration& migration) {
  migration.note(setting, place, text);
}

}  // namespace opmux::cli::migrate
