#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "cli/migrate/vllm_fl.hpp"

namespace opmux::cli::migrate {
namespace {

constexpr int kMostLayers = 1000;

struct FlOperator {
  std::string_view theirs, ours;
};

/// Operators with other names. A name that is the same in both systems needs no line.
constexpr FlOperator kFlOperators[] = {
    {"rmsnorm", "rms_norm"},
    {"attention_backend", "attention"},
    {"attention_backend", "paged_attention"},
    {"moe_align_block_size", "fused_moe"},
    {"moe_sum", "fused_moe"},
    {"invoke_fused_moe_triton_kernel", "fused_moe"},
};

/// A whole number; nullopt for any other text.
std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The layers of FL's filter, numbers and ranges, as the tags that a program gives its layers.
std::string tags_of_layers(const Words& layers) {
  Words tags;
  for (const std::string& one : layers) {
    const size_t dash = std::min(one.find('-'), one.size());
    const std::optional<int> first = number_in(std::string_view(one).substr(0, dash));
    const std::optional<int> last =
        dash == one.size() ? first : number_in(std::string_view(one).substr(dash + 1));
    if (!first || !last || *last - *first > kMostLayers) {
      tags.push_back(one);
      continue;
    }
    for (int i = *first; i <= *last; ++i) tags.push_back(base::concat("layer.", i));
  }
  return base::join(tags, ",");
}

}  // namespace

Words operators_of_fl(std::string_view theirs) {
  Words ours;
  for (const FlOperator& one : kFlOperators) {
    if (one.theirs == theirs) ours.emplace_back(one.ours);
  }
  if (ours.empty()) ours.emplace_back(theirs);
  return ours;
}

std::string dump_text(const TextNode& node) { return base::join(words_of(node, ','), ","); }

void take_dump(std::string_view part, const Setting& setting, Migration& migration) {
  using Part = Migration::DumpPart;
  const Words words = split(setting.value, ',');
  if (part == "dir" || part.empty()) {
    const std::string folder = setting.value == "1" ? "./io_dump" : setting.value;
    migration.set_variable(setting, "OPMUX_RECORD", base::concat("inputs:", folder),
                           "`opmux replay` reads the files");
    migration.set_dump(setting, Part::operators, "*", "every operator, unless a filter follows");
  } else if (part == "ops") {
    Words ops;
    for (const std::string& word : words) {
      for (std::string& op : operators_of_fl(word)) ops.push_back(std::move(op));
    }
    migration.set_dump(setting, Part::operators, base::join(ops, ","));
  } else if (part == "layers") {
    migration.set_dump(setting, Part::layers, tags_of_layers(words), "the tags of calls");
  } else if (part == "step_range") {
    migration.set_dump(setting, Part::steps, setting.value, "counted from 0");
  } else if (part == "max_calls") {
    migration.note(setting, Place::code, "RecordOptions::max_files, a limit for the folder");
  } else if (part == "with_values" || part == "with_metas") {
    migration.note(setting, Place::environment,
                   "shapes are always written, elements with OPMUX_RECORD=inputs:FOLDER");
  } else {
    migration.note(setting, Place::none, "calls are chosen by operator, layer and step alone");
  }
}

}  // namespace opmux::cli::migrate
