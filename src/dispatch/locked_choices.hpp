#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/class_facts.hpp"

namespace opmux::dispatch {

struct Decision;

/// What runs for one class of calls of a frozen runtime.
struct LockedClass {
  policy::ClassFacts when;
  std::string implementation;
};

/// The locked classes of one operator, found by the facts of a call. Immutable.
class LockedClasses {
 public:
  LockedClasses() = default;
  explicit LockedClasses(std::vector<LockedClass> classes);

  /// The first class that a call is of; null if there is none.
  const LockedClass* find(const registry::Signature& signature) const;
  /// What find() looks at.
  const registry::Dependencies& dependencies() const { return dependencies_; }

 private:
  /// Some of the classes, a bit each.
  using Some = std::vector<uint64_t>;
  /// Classes that give a fact one value; all of them at once are looked up by it.
  struct Exact {
    registry::Fact fact;
    Some any;
    std::unordered_map<int64_t, Some> by_value;
  };
  struct Question {
    policy::ClassFact fact;
    Some classes;
  };

  void add(const policy::ClassFact& fact, size_t index);
  void add_dependencies();

  std::vector<LockedClass> classes_;
  std::vector<Exact> exact_;
  std::vector<Question> questions_;
  registry::Dependencies dependencies_;
};

/// The choices of a frozen runtime. Immutable.
struct LockSet {
  std::string name;  ///< of the lockfile; "the frozen runtime" if there is none
  std::map<std::string, LockedClasses, std::less<>> by_op;

  /// Null if nothing of the operator is locked.
  const LockedClasses* of(std::string_view op) const;
};

/// What became of a decision of a frozen runtime.
enum class LockVerdict : uint8_t {
  free,           ///< it is not frozen
  kept,           ///< the choice of the lockfile comes first
  overruled,      ///< by a scope, which may
  unknown_class,  ///< the lockfile says nothing of such calls
  refused,        ///< what it says may not run
};

/// Puts what the set says first. Where strict is set and it says nothing, or that may not run, no
/// candidate is left.
void apply_lock(const LockSet& lock, const registry::Signature& signature, Decision& decision);

/// Why a decision is not what the set says; empty if it is, or a scope wants it so.
std::string describe_deviation(const LockSet& lock, const Decision& decision,
                               const registry::Signature& signature);

/// What a strict call of a frozen runtime returns instead of a deviation.
Status no_deviation(std::string_view why, LockVerdict verdict);

}  // namespace opmux::dispatch
