#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Serializes policies unambiguously: equal bytes mean equal values. Strings are written with their
/// length.
class ContentWriter {
 public:
  void add(std::string_view text);
  void add(const std::vector<std::string>& list);
  void add_number(int64_t number);
  void add_real(double number);
  void add(const std::optional<bool>& flag);
  void add(const Condition& condition);
  /// Adds the effect of a rule, without its name, owner, reason and location.
  void add_effect(const Rule& rule);
  /// Adds the fields that apply to all operators: everything except per_op and rules.
  void add_general(const Policy& policy);
  /// Adds the whole policy with names, owners and locations of rules, and its outer policies.
  void add_all(const Policy& policy);

  const std::string& bytes() const { return bytes_; }
  uint64_t hash() const;

 private:
  std::string bytes_;
};

}  // namespace opmux::policy
