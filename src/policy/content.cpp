#include "policy/content.hpp"

#include <bit>

namespace opmux::policy {

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

void ContentWriter::add_effect(const Rule& rule) {
  add_number(rule.when ? 1 : 0);
  if (rule.when) add(*rule.when);
  for (const auto* list : {&rule.require, &rule.prefer, &rule.order, &rule.deny, &rule.allow}) {
    add(*list);
  }
  add_number(static_cast<int64_t>(rule.boost.size()));
  for (const Boost& boost : rule.boost) {
    add(boost.impl);
    add_real(boost.add);
    add_real(boost.multiply);
  }
  add(rule.transforms);
  add(rule.strict);
  add_number(int{rule.expired} | int{rule.allow_none} << 1);
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
    add_number(static_cast<int64_t>(at->per_op.size()));
    for (const auto& [op, order] : at->per_op) {
      add(op);
      add(order);
    }
    add_number(static_cast<int64_t>(at->rules.size()));
    for (const Rule& rule : at->rules) {
      add_effect(rule);
      add_number(rule.rank);
      for (const auto* text :
           {&rule.name, &rule.op, &rule.reason, &rule.owner, &rule.expires, &rule.where}) {
        add(*text);
      }
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

}  // namespace opmux::policy
