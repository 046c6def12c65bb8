#include "policy/rules/policy_set.hpp"

#include <algorithm>
#include <bit>
#include <concepts>
#include <memory>
#include <utility>

#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "policy/rules/rule_fields.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {
namespace {

bool says_something_general(const Policy& policy) {
  return !policy.prefer.empty() || !policy.require.empty() || !policy.deny.empty() ||
         !policy.allow.empty() || !policy.allow_vendors.empty() || !policy.deny_vendors.empty() ||
         !policy.transforms.empty() || policy.strict || policy.allow_none || policy.tuning;
}

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

uint64_t general_hash(const Policy& policy) {
  if (!says_something_general(policy)) return 0;
  ContentWriter writer;
  writer.add_general(policy);
  // Only if it is set, so that the lockfiles of other policies stay valid.
  if (policy.allow_none) writer.add(std::string_view("allow_none"));
  if (policy.tuning) writer.add(base::concat("tuning ", name_of(*policy.tuning)));
  return writer.hash();
}

uint64_t effect_hash(const Rule& rule) {
  ContentWriter writer;
  writer.add_effect(rule);
  return writer.hash();
}

uint64_t order_hash(const Policy& policy, std::string_view op) {
  const auto found = policy.per_op.find(std::string(op));
  if (found == policy.per_op.end()) return 0;
  ContentWriter writer;
  writer.add(found->second);
  return writer.hash();
}

/// A copy of a policy for one operator without the rules.
Policy without_rules(const Policy& whole, std::string_view op) {
  Policy part{.prefer = whole.prefer,
              .require = whole.require,
              .deny = whole.deny,
              .allow = whole.allow,
              .strict = whole.strict,
              .allow_vendors = whole.allow_vendors,
              .deny_vendors = whole.deny_vendors,
              .transforms = whole.transforms,
              .allow_none = whole.allow_none,
              .tuning = whole.tuning};
  const auto order = whole.per_op.find(std::string(op));
  if (order != whole.per_op.end()) part.per_op.insert(*order);
  return part;
}

}  // namespace

std::string_view name_of(Source source) {
  switch (source) {
    case Source::scope: return "scope";
    case Source::code: return "code";
    case Source::file: return "file";
    case Source::environment: return "environment";
    case Source::platform: return "platform";
    case Source::builtin: return "built-in";
  }
  return "unknown";
}

Result<PolicyLayerPtr> PolicyLayer::make(Source source, Policy policy, std::string name) {
  if (Status status = validate(policy); !status.ok()) return status;
  auto layer = std::make_shared<PolicyLayer>();
  if (policy.outer) {
    auto outer = make(source, *policy.outer, name);
    if (!outer) return outer;
    layer->outer_ = std::move(*outer);
  }
  layer->source_ = source;
  layer->policy_ = std::move(policy);
  layer->name_ = std::move(name);
  layer->index();
  return PolicyLayerPtr(std::move(layer));
}

void PolicyLayer::index() {
  general_hash_ = general_hash(policy_);
  for (const Rule& rule : policy_.rules) ordered_.push_back(&rule);
  // All rules are in one vector, so address order is list order.
  std::sort(ordered_.begin(), ordered_.end(), [](const Rule* a, const Rule* b) {
    return a->rank != b->rank ? a->rank > b->rank : a < b;
  });
  std::unordered_map<std::string_view, size_t> patterns;
  for (const Rule* rule : ordered_) {
    const auto position = static_cast<uint32_t>(rule_hashes_.size());
    rule_hashes_.push_back(effect_hash(*rule));
    if (rule->op.find('*') == std::string::npos) {
      by_operator_[rule->op].push_back(position);
      continue;
    }
    const auto [at, added] = patterns.emplace(rule->op, by_pattern_.size());
    if (added) by_pattern_.push_back({rule->op, {}});
    by_pattern_[at->second].rules.push_back(position);
  }
}

PolicyLayer::Positions PolicyLayer::positions_for(std::string_view op) const {
  Positions positions;
  const auto exact = by_operator_.find(op);
  if (exact != by_operator_.end()) positions = exact->second;
  for (const Pattern& pattern : by_pattern_) {
    if (!glob_match(pattern.glob, op)) continue;
    positions.insert(positions.end(), pattern.rules.begin(), pattern.rules.end());
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

std::vector<const Rule*> PolicyLayer::rules_for(std::string_view op) const {
  std::vector<const Rule*> rules;
  for (const uint32_t position : positions_for(op)) rules.push_back(ordered_[position]);
  return rules;
}

uint64_t PolicyLayer::hash_for(std::string_view op) const {
  const uint64_t order = order_hash(policy_, op);
  const uint64_t outer = outer_ ? outer_->hash_for(op) : 0;
  const Positions positions = positions_for(op);
  if (general_hash_ == 0 && order == 0 && outer == 0 && positions.empty()) return 0;
  uint64_t hash = mixed(mixed(mixed(1, general_hash_), order), outer);
  for (const uint32_t position : positions) hash = mixed(hash, rule_hashes_[position]);
  return hash;
}

PolicyLayerPtr PolicyLayer::part_for(std::string_view op) const {
  if (hash_for(op) == 0) return nullptr;
  auto part = std::make_shared<PolicyLayer>();
  part->source_ = source_;
  part->name_ = name_;
  part->policy_ = without_rules(policy_, op);
  for (const Rule* rule : rules_for(op)) part->policy_.rules.push_back(*rule);
  if (outer_) part->outer_ = outer_->part_for(op);
  part->index();
  return part;
}

bool PolicyLayer::add_named(std::vector<std::string_view>& operators) const {
  if (general_hash_ != 0 || !by_pattern_.empty()) return false;
  for (const auto& [op, positions] : by_operator_) operators.push_back(op);
  for (const auto& [op, order] : policy_.per_op) operators.push_back(op);
  return outer_ == nullptr || outer_->add_named(operators);
}

std::optional<std::vector<std::string_view>> PolicySet::differing(const PolicySet& other) const {
  std::vector<std::string_view> operators;
  const auto add_layers_outside = [&](const PolicySet& from, const PolicySet& outside) {
    return std::ranges::all_of(from.layers, [&](const PolicyLayerPtr& layer) {
      return std::ranges::find(outside.layers, layer) != outside.layers.end() ||
             layer->add_named(operators);
    });
  };
  if (!add_layers_outside(*this, other) || !add_layers_outside(other, *this)) return std::nullopt;
  std::ranges::sort(operators);
  const auto repeated = std::ranges::unique(operators);
  operators.erase(repeated.begin(), repeated.end());
  return operators;
}

PolicySet PolicySet::part_for(std::string_view op) const {
  PolicySet part;
  for (const PolicyLayerPtr& layer : layers) {
    if (PolicyLayerPtr own = layer->part_for(op)) part.layers.push_back(std::move(own));
  }
  return part;
}

uint64_t PolicySet::hash_for(std::string_view op) const {
  uint64_t hash = 0;
  for (const PolicyLayerPtr& layer : layers) {
    const uint64_t own = layer->hash_for(op);
    if (own != 0) hash = mixed(mixed(hash, static_cast<uint64_t>(layer->source()) + 1), own);
  }
  return hash;
}

void ContentWriter::add_number(int64_t number) {
  bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void ContentWriter::add_real(double number) { add_number(std::bit_cast<int64_t>(number)); }

void ContentWriter::add(std::string_view text) {
  add_number(static_cast<int64_t>(text.size()));
  bytes_.append(text);
}

void ContentWriter::add(const std::vector<std::string>& list) {
  add_number(static_cast<int64_t>(list.size()));
  for (const std::string& text : list) add(text);
}

void ContentWriter::add(const std::optional<bool>& flag) { add_number(flag ? int{*flag} : -1); }

void ContentWriter::add(const Condition& condition) {
  const Condition::Node& node = condition.node();
  add_number(static_cast<int64_t>(node.kind));
  add(node.name);
  add_number(static_cast<int64_t>(node.compare));
  add_number(node.value);
  add(node.text);
  add_number(static_cast<int64_t>(node.operands.size()));
  for (const Condition& operand : node.operands) add(operand);
}

namespace {

/// Adds the values of a rule's members.
class ValueWriter {
 public:
  explicit ValueWriter(ContentWriter& to) : to_(to) {}

  void add(const std::string& text) { to_.add(text); }
  void add(const Condition& condition) { to_.add(condition); }
  void add(const std::optional<bool>& flag) { to_.add(flag); }
  void add(double number) { to_.add_real(number); }
  template <std::integral T>
  void add(T number) {
    to_.add_number(number);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    to_.add_number(static_cast<int64_t>(list.size()));
    for (const T& one : list) add(one);
  }
  template <class T>
  void add(const std::optional<T>& value) {
    to_.add_number(value ? 1 : 0);
    if (value) add(*value);
  }
  void add(const Boost& boost) { add_each(boost.impl, boost.add, boost.multiply); }
  void add(const BreakerOptions& options) {
    // A binding does not compile if it lacks a member.
    const auto& [failures, rate, window, calls, open, longest, permits, successes, slow, share,
                 factor] = options;
    add_each(failures, rate, window, calls, open, longest, permits, successes, slow, share);
    if (factor) add(factor);  // newer: the lockfiles of policies without it stay valid
  }

 private:
  template <class... Values>
  void add_each(const Values&... values) {
    (add(values), ...);
  }

  ContentWriter& to_;
};

}  // namespace

void ContentWriter::add_effect(const Rule& rule) {
  ValueWriter values(*this);
  int64_t bits = 0, position = 0, extra = 0;
  for_each_rule_field([&](const auto& field) {
    if (field.hashed == Hashed::always) values.add(rule.*field.member);
    if (field.hashed == Hashed::bit) bits |= int64_t{is_set(field, rule)} << position++;
    if (field.hashed == Hashed::if_set) extra += is_set(field, rule);
  });
  add_number(bits | extra << 32);
  for_each_rule_field([&](const auto& field) {
    if (field.hashed != Hashed::if_set || !is_set(field, rule)) return;
    add(field.key);
    values.add(rule.*field.member);
  });
}

void ContentWriter::add_general(const Policy& policy) {
  for (const auto* list : {&policy.prefer, &policy.require, &policy.deny, &policy.allow,
                           &policy.allow_vendors, &policy.deny_vendors, &policy.transforms}) {
    add(*list);
  }
  add(policy.strict);
}

void ContentWriter::add_all(const Policy& policy) {
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) {
    add_general(*at);
    add_number(at->allow_none ? 1 : 0);
    add_number(at->tuning ? static_cast<int64_t>(*at->tuning) : -1);
    add_number(static_cast<int64_t>(at->per_op.size()));
    for (const auto& [op, order] : at->per_op) {
      add(op);
      add(order);
    }
    add_number(static_cast<int64_t>(at->rules.size()));
    for (const Rule& rule : at->rules) {
      for_each_rule_field([&](const auto& field) { ValueWriter(*this).add(rule.*field.member); });
    }
  }
}

uint64_t ContentWriter::hash() const {
  // Like FNV-1a, but eight bytes per step, then the remaining bytes, then the length.
  uint64_t hash = 0xcbf29ce484222325u;
  const char* at = bytes_.data();
  size_t left = bytes_.size();
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  for (; left >= sizeof(uint64_t); at += sizeof(uint64_t), left -= sizeof(uint64_t)) {
    uint64_t word = 0;
    __builtin_memcpy(&word, at, sizeof(word));
    mix(word);
  }
  for (; left > 0; ++at, --left) mix(static_cast<unsigned char>(*at));
  mix(bytes_.size());
  return hash;
}

namespace {

/// The time at which a rule expires; nullopt if it never does or already has.
std::optional<std::chrono::sys_seconds> end_of(const Rule& rule) {
  const auto end = rule.expired ? std::nullopt : base::end_of_day(rule.expires);
  if (!end) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(*end));
}

}  // namespace

bool mark_expired(Policy& policy, std::chrono::sys_seconds now) {
  bool any = false;
  for (Rule& rule : policy.rules) {
    const auto end = end_of(rule);
    if (!end || *end > now) continue;
    rule.expired = any = true;
  }
  if (policy.outer == nullptr) return any;
  Policy outer = *policy.outer;
  if (!mark_expired(outer, now)) return any;
  policy.outer = std::make_shared<const Policy>(std::move(outer));
  return true;
}

std::optional<std::chrono::sys_seconds> next_expiry(const Policy& policy) {
  std::optional<std::chrono::sys_seconds> next =
      policy.outer == nullptr ? std::nullopt : next_expiry(*policy.outer);
  for (const Rule& rule : policy.rules) {
    const auto end = end_of(rule);
    if (end && (!next || *end < *next)) next = end;
  }
  return next;
}

}  // namespace opmux::policy
