#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Unambiguous bytes: equal bytes are equal values. Strings carry their length.
class ContentWriter {
 public:
  void add(std::string_view text);
  void add(const std::vector<std::string>& list);
  void add_number(int64_t number);
  void add_real(double number);
  void add(const std::optional<bool>& flag);
  void add(const Condition& condition);
  /// What a rule does; not what it is called, who owns it or where it stands.
  void add_effect(const Rule& rule);
  /// Everything that is not bound to one operator: neither per_op nor rules.
  void add_general(const Policy& policy);
  /// The whole policy with labels, and those it stands on.
  void add_all(const Policy& policy);

  const std::string& bytes() const { return bytes_; }
  uint64_t hash() const;

 private:
  std::string bytes_;
};

}  // namespace opmux::policy
