#include "config/policy_reader.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"
#include "config/policy_values.hpp"
#include "config/rule_reader.hpp"
#include "config/yaml_reader.hpp"

namespace opmux::config {
namespace {

constexpr int64_t kFormat = 1;

/// Reads the top-level map of a file.
class PolicyReader {
 public:
  explicit PolicyReader(const ReadContext& context)
      : context_(context), values_(context.problems) {}

  Policy read(const TextNode& node) {
    if (!node.is(TextNode::Kind::null) &&
        !read_map(node, "a policy", fields(), context_.problems)) {
      return {};
    }
    context_.strict_names = policy_.strict_names || context_.strict_names;
    if (rules_ != nullptr) read_rules(context_, *rules_, policy_.rules);
    if (!versioned_) {
      values_.refuse(node, "policy.version",
                     "the format version is missing; start the policy with opmux: 1");
    }
    return std::move(policy_);
  }

 private:
  std::vector<Field> fields() {
    return {{"opmux", [this](const TextNode& value) { read_format(value); }},
            {"defaults", [this](const TextNode& value) { read_defaults(value); }},
            {"rules", [this](const TextNode& value) { rules_ = &value; }},
            {"breaker", [this](const TextNode& v) { values_.breaker(v, policy_.breaker); }},
            {"shadow", [this](const TextNode& v) { values_.shadow(v, policy_.shadow); }},
            {"names", [this](const TextNode& value) { read_names(value); }}};
  }

  void read_format(const TextNode& node) {
    versioned_ = true;
    if (int_of(node) == kFormat) return;
    values_.refuse(
        node, "policy.version",
        base::concat("opmux: expected 1, the format version that this library reads, found ",
                     shown(node)));
  }

  void read_defaults(const TextNode& node) {
    const std::array<Field, 4> fields{{
        {"strict", [this](const TextNode& v) { values_.boolean(v, "strict", policy_.strict); }},
        {"prefer", [this](const TextNode& v) { values_.tokens(v, "prefer", policy_.prefer); }},
        {"allow", [this](const TextNode& v) { values_.tokens(v, "allow", policy_.allow); }},
        {"transforms", [this](const TextNode& v) { values_.transforms(v, policy_.transforms); }},
    }};
    read_map(node, "defaults", fields, context_.problems);
  }

  void read_names(const TextNode& node) {
    constexpr std::array<std::string_view, 2> kWords{"lenient", "strict"};
    policy_.strict_names = values_.word(node, "names", kWords) == size_t{1};
  }

  ReadContext context_;
  ValueReader values_;
  Policy policy_;
  const TextNode* rules_ = nullptr;  ///< read last, because `names` may follow them
  bool versioned_ = false;
};

}  // namespace

Result<Policy> parse_policy(std::string_view text, std::string_view name,
                            const registry::RegistrySnapshot* known, bool strict_names) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Problems problems;
  const auto node = read_yaml(text, problems);
  if (!node) return problems.status(name, text);
  const SourceLines lines(text);
  Policy policy = PolicyReader({name, text, lines, problems, known, strict_names}).read(*node);
  if (!problems.none()) return problems.status(name, text);
  if (Status status = validate(policy); !status.ok()) return status;
  return policy;
}

}  // namespace opmux::config
