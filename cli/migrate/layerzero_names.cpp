#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"
#include "cli/migrate/layerzero.hpp"

namespace opmux::cli::migrate {
namespace {

struct Operation {
  const char* theirs;
  std::string_view op, when;
};

constexpr Operation kOperations[] = {
    {"attention", "attention", ""},
    {"attention.causal", "attention", "causal"},
    {"attention.full", "attention", "!causal"},
    {"attention.sliding_window", "attention", "window > 0"},
    {"attention.cross", "attention", "S != T"},
    {"attention.prefill", "attention", "S > 1"},
    {"attention.decode", "attention", "S == 1"},
    {"norm.rms", "rms_norm", ""},
    {"rms_norm", "rms_norm", ""},
    {"norm.layer", "layer_norm", ""},
    {"layer_norm", "layer_norm", ""},
    {"rope", "rotary_embedding", ""},
    {"rope.standard", "rotary_embedding", "style == \"neox\""},
    {"rope.interleaved", "rotary_embedding", "style == \"gptj\""},
    {"swiglu", "silu_and_mul", ""},
    {"matmul", "matmul", ""},
    {"sample.top_k", "sample", ""},
    {"sample.top_p", "sample", ""},
    {"sample.greedy", "sample", ""},
};

/// Ends of kernel ids, longest first, and the operator that each stands for.
constexpr std::pair<std::string_view, std::string_view> kEnds[] = {
    {"_layer_norm", "layer_norm"}, {"_attention", "attention"}, {"_layernorm", "layer_norm"},
    {"_rms_norm", "rms_norm"},     {"_rmsnorm", "rms_norm"},    {"_rotary", "rotary_embedding"},
    {"_matmul", "matmul"},         {"_swiglu", "silu_and_mul"}, {"_attn", "attention"},
    {"_rope", "rotary_embedding"}, {"_sdpa", "attention"},
};

std::pair<std::string_view, std::string_view> end_of(std::string_view kernel) {
  for (const auto& one : kEnds) {
    if (kernel.ends_with(one.first)) return one;
  }
  return {"", "*"};
}

struct Field {
  std::string_view theirs, ours;
};

/// Fields that are a name in opmux's conditions. tp_size, pp_size and rank are tried as facts.
constexpr Field kFields[] = {
    {"batch_size", "B"},
    {"seq_len", "S"},
    {"seq_len_q", "S"},
    {"seq_len_k", "T"},
    {"head_dim", "D"},
    {"num_heads", "HQ"},
    {"num_kv_heads", "HKV"},
    {"is_causal", "causal"},
    {"is_cuda_graph_capturing", "capturing"},
    {"requires_deterministic", "deterministic"},
    {"tp_size", "tp_size"},
    {"pp_size", "pp_size"},
    {"rank", "rank"},
};

struct Suffix {
  std::string_view theirs, ours;
};

/// Longest first, so that `_not_in` is not read as `_in` of a field that ends in `_not`.
constexpr Suffix kSuffixes[] = {
    {"_not_in", "not in"}, {"_match", "match"}, {"_regex", "regex"}, {"_gte", ">="}, {"_lte", "<="},
    {"_eq", "=="},         {"_ne", "!="},       {"_gt", ">"},        {"_lt", "<"},   {"_in", "in"},
};

constexpr Field kDTypes[] = {
    {"float16", "f16"}, {"float32", "f32"}, {"float64", "f64"}, {"bfloat16", "bf16"},
    {"int8", "i8"},     {"int16", "i16"},   {"int32", "i32"},   {"int64", "i64"},
    {"uint8", "u8"},    {"bool", "bool"},
};
/// Of a tensor with dimensions [B, S, H, D].
constexpr Field kLayouts[] = {{"BSHD", "0123"}, {"BHSD", "0213"}};

std::string quoted(std::string_view word) { return base::concat("\"", word, "\""); }

/// The words that a pattern or a name of a field's values stands for.
Words translated(std::span<const Field> table, std::string_view word) {
  Words found;
  for (const Field& one : table) {
    if (fnmatch(std::string(word).c_str(), std::string(one.theirs).c_str(), 0) == 0) {
      found.push_back(quoted(one.ours));
    }
  }
  return found;
}

/// A condition field of LayerZero: its name, the comparison and the values.
struct Comparison {
  std::string field, sign;
  Words values;
};

Comparison read_comparison(std::string_view key, const TextNode& value) {
  Comparison one{std::string(key), value.is(TextNode::Kind::list) ? "in" : "==", {}};
  const bool whole = std::ranges::find(kFields, key, &Field::theirs) != std::end(kFields);
  for (const Suffix& suffix : kSuffixes) {
    if (whole || !key.ends_with(suffix.theirs)) continue;
    one.field = key.substr(0, key.size() - suffix.theirs.size());
    one.sign = suffix.ours;
    break;
  }
  one.values = words_of(value, ',');
  return one;
}

/// `name SIGN value`, for numbers, booleans and quoted words.
std::string compared(std::string_view name, const Comparison& by, const Words& values) {
  if (by.sign == "in" || by.sign == "not in" || by.sign == "match") {
    const std::string text = base::concat(name, " in [", base::join(values, ", "), "]");
    return by.sign == "not in" ? base::concat("!(", text, ")") : text;
  }
  if (values.size() == 1 && (values[0] == "true" || values[0] == "false")) {
    const bool wanted = (values[0] == "true") == (by.sign == "==");
    return wanted ? std::string(name) : base::concat("!", name);
  }
  return base::concat(name, " ", by.sign, " ", values.empty() ? "" : values[0]);
}

/// The condition of one field for a first tensor; empty and `why` set if there is none.
std::string condition_of(const Comparison& one, std::string_view tensor, std::string& why) {
  if (one.sign == "regex") {
    why = "opmux compares words by patterns, not by regular expressions";
    return {};
  }
  if (one.field == "enable_gqa") {
    const bool wanted = one.values == Words{"true"} && one.sign == "==";
    return wanted ? "HQ != HKV" : "HQ == HKV";
  }
  std::span<const Field> table;
  std::string_view question = "dtype(";
  if (one.field == "dtype") table = kDTypes;
  if (one.field == "layout") table = kLayouts, question = "layout(";
  if (!table.empty()) {
    Words words;
    for (const std::string& value : one.values) {
      for (std::string& word : translated(table, value)) words.push_back(std::move(word));
    }
    if (words.empty()) why = base::concat("no ", one.field, " of opmux is ", one.values[0]);
    return words.empty() ? "" : compared(base::concat(question, tensor, ")"), one, words);
  }
  if (one.field == "platform" || one.field == "device") {
    Words words;
    for (const std::string& value : one.values) {
      words.push_back(quoted(std::string_view(value).substr(0, value.find(':'))));
    }
    return compared(base::concat("device(", tensor, ")"), one, words);
  }
  const auto* const field = std::ranges::find(kFields, one.field, &Field::theirs);
  if (field == std::end(kFields)) {
    why = base::concat("no fact of opmux is ", one.field);
    return {};
  }
  return compared(field->ours, one, one.values);
}

/// The name of an operator's first input, from its schema.
std::string first_tensor(const OperatorInfo& op) {
  const std::string_view schema = op.schema;
  for (size_t at = 0; (at = schema.find("Tensor", at)) != schema.npos; ++at) {
    const std::string_view before = schema.substr(0, at);
    if (before.ends_with("out ") && !before.ends_with("inout ")) continue;
    const size_t start = schema.find(' ', at) + 1;
    const size_t end = schema.find_first_of("[,)", start);
    return std::string(schema.substr(start, end - start));
  }
  return {};
}

Words first_tensors(std::string_view op, const Migration& migration) {
  Words names;
  for (const OperatorInfo& one : migration.operators()) {
    if (op != "*" && one.name != op) continue;
    std::string name = first_tensor(one);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

bool asks_a_tensor(const Comparison& one) {
  return one.field == "dtype" || one.field == "layout" || one.field == "platform" ||
         one.field == "device";
}

}  // namespace

std::vector<LzTarget> targets_of(std::string_view operation) {
  if (operation == "*") return {{"*", ""}};
  const std::string pattern(operation);
  const bool several = pattern.find_first_of("*?[") != pattern.npos;
  std::vector<LzTarget> targets;
  for (const Operation& one : kOperations) {
    if (fnmatch(pattern.c_str(), one.theirs, 0) != 0) continue;
    LzTarget target{std::string(one.op), std::string(several ? "" : one.when)};
    const bool known =
        std::ranges::any_of(targets, [&](const LzTarget& other) { return other.op == target.op; });
    if (!known) targets.push_back(std::move(target));
  }
  return targets;
}

std::string operator_of_kernel(std::string_view kernel) {
  return std::string(end_of(kernel).second);
}

Words tokens_of_kernel(std::string_view kernel, std::string_view op, const Migration& migration) {
  if (const auto given = migration.kernels.find(kernel); given != migration.kernels.end()) {
    return {given->second};
  }
  if (kernel.starts_with("torch") || kernel == "eager") return {"reference"};
  std::string provider(kernel.substr(0, kernel.size() - end_of(kernel).first.size()));
  const bool open = provider.ends_with("_*") || provider.ends_with(".*");
  if (open) provider.resize(provider.size() - 2);
  for (char& c : provider) {
    const auto letter = static_cast<unsigned char>(c);
    c = static_cast<char>(c == '*' || std::isalnum(letter) ? std::tolower(letter) : '_');
  }
  Words tokens{base::concat(op, "/", provider, ".*")};
  // "acme_*" is acme_attention, whose provider is acme, and acme_v2_attention, of acme_v2.
  if (open) tokens.push_back(base::concat(op, "/", provider, "_*.*"));
  return tokens;
}

std::vector<std::string> conditions_of(const TextNode* conditions, const LzTarget& target,
                                       const Migration& migration, std::string& why) {
  std::vector<Comparison> all;
  for (size_t i = 0; conditions != nullptr && i + 1 < conditions->items.size(); i += 2) {
    all.push_back(read_comparison(conditions->items[i].text, conditions->items[i + 1]));
  }
  Words tensors{""};
  if (std::ranges::any_of(all, asks_a_tensor)) tensors = first_tensors(target.op, migration);
  std::vector<std::string> whole;
  for (const std::string& tensor : tensors) {
    Words parts;
    if (!target.when.empty()) parts.push_back(target.when);
    for (const Comparison& one : all) {
      parts.push_back(condition_of(one, tensor, why));
      if (parts.back().empty()) return {};
    }
    whole.push_back(base::join(parts, " && "));
  }
  return whole;
}

}  // namespace opmux::cli::migrate
