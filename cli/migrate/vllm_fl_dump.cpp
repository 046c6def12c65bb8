#include <algorithm>
#include <cstdio>
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

/// The layers of FL's filter, numbers and ranges, as the tags that a program gives its layers.
std::string tags_of_layers(const Words& layers) {
  Words tags;
  for (const std::string& one : layers) {
    int first = 0, last = 0;
    const int found = std::sscanf(one.c_str(), "%d-%d", &first, &last);
    if (found < 1 || last - first > kMostLayers) {
      tags.push_back(one);
      continue;
    }
    for (int i = first; i <= std::max(first, last); ++i) tags.push_back(base::concat("layer.", i));
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
