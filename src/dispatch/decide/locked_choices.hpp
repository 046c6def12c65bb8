#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/conditions/class_facts.hpp"

namespace opmux::dispatch {

struct Evaluation;

/// One entry of a lock: the implementation that runs for one class of calls.
struct LockedClass {
  policy::ClassFacts when;
  std::string implementation;
};

/// The locked classes of one operator, looked up by the facts of a call. Immutable.
class LockedClasses {
 public:
  LockedClasses() = default;
  explicit LockedClasses(std::vector<LockedClass> classes);

  /// Returns the first class that matches the call, or null.
  const LockedClass* find(const schema::Signature& signature) const;
  /// The facts that find() reads.
  const schema::Dependencies& dependencies() const { return dependencies_; }

 private:
  /// A set of classes as a bit mask.
  using Some = std::vector<uint64_t>;
  /// The classes that require an exact value of one fact, indexed by that value.
  struct Exact {
    schema::Fact fact;
    Some any;  ///< union of `by_value`
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
  schema::Dependencies dependencies_;
};

/// The choices of a frozen runtime. Immutable.
struct LockSet {
  std::string name;  ///< name of the lockfile, or "the frozen runtime" if there is no file
  std::map<std::string, LockedClasses, std::less<>> by_op;

  /// The locked classes of an operator; null if it has none.
  const LockedClasses* of(std::string_view op) const;
};

/// How the lock of a frozen runtime affected a decision.
enum class LockVerdict : uint8_t {
  free,           ///< the runtime is not frozen
  kept,           ///< the locked implementation is the winner
  overruled,      ///< a scope chose another implementation, which is allowed
  unknown_class,  ///< the lock has no entry for the call
  refused,        ///< the locked implementation was refused
};

/// Moves the locked implementation to the front of the order. With strict, refuses all candidates
/// if the lock has no entry for the call or the locked implementation was refused.
void apply_lock(const LockSet& lock, const schema::Signature& signature, Evaluation& decision);

/// Describes how a decision deviates from the lock. Empty if it does not deviate or a scope
/// overruled the lock.
std::string describe_deviation(const LockSet& lock, const Evaluation& decision,
                               const schema::Signature& signature);

/// The error of a strict call in a frozen runtime that would deviate from the lock.
Status no_deviation(std::string_view why, LockVerdict verdict);

}  // namespace opmux::dispatch
