#include "dispatch/decide/lock_fit.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "base/text.hpp"
#include "policy/rules/operator_policy.hpp"
#include "registry/implementation/can_run.hpp"

namespace opmux::dispatch {
namespace {

constexpr size_t kMostDifferences = 20;

std::string hex16(uint64_t number) {
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return {text.data(), 16};
}

std::string schema_hash(const schema::Schema& schema) {
  return hex16(schema.prefix_hash(schema.args.size()));
}

/// Compares the locked choices of one operator with the runtime.
class OperatorFit {
 public:
  /// `same_policy`: the policy is unchanged since the lockfile was written, so its conditional
  /// drops were already taken into account.
  OperatorFit(std::string op, const LockSurroundings& now, bool same_policy)
      : op_(std::move(op)), same_policy_(same_policy) {
    const auto* const found = now.registry->operators.find(op_);
    if (found == nullptr) return;
    record_ = found->second;
    const auto compiled = policy::OperatorPolicy::compile(*now.policies, nullptr, record_);
    formulas_ = compiled->dependencies().formulas();
    compiled->assume("", view_);
  }

  /// Why a choice does not match; empty if it matches and was added.
  std::string add(const LockedChoice& choice) {
    if (record_ == nullptr) return base::concat("operator ", op_, " does not exist");
    if (choice.schema_hash != schema_hash(*record_->schema)) {
      return base::concat(op_, " has another schema: ", record_->schema->canonical());
    }
    const auto at = std::ranges::find(record_->implementations, choice.implementation,
                                      [](const auto& each) { return each->id; });
    if (at == record_->implementations.end()) return choice.implementation + " is not registered";
    const registry::ImplementationRecord& implementation = **at;
    if (implementation.build_id != choice.build_id) {
      const auto text = [](const std::string& id) { return id.empty() ? "none" : id; };
      return base::concat(choice.implementation,
                          " comes from another build: ", text(implementation.build_id), ", was ",
                          text(choice.build_id));
    }
    if (std::string why; obstacle_to_run(implementation, why) != registry::Reason::none) {
      return base::concat(choice.implementation, " cannot run here: ", why);
    }
    const policy::PolicyView::Drop& drop =
        view_.drops[static_cast<size_t>(at - record_->implementations.begin())];
    if (!same_policy_ && drop.reason != registry::Reason::none) {
      return base::concat(choice.implementation, " may not run: ", code_of(drop.reason), " by ",
                          policy::describe(drop.by));
    }
    auto when = policy::parse_class_facts(*record_->schema, formulas_, choice.when);
    if (!when) return std::string(when.error().message());
    classes_.push_back({std::move(*when), choice.implementation});
    return {};
  }

  LockedClasses take() { return LockedClasses(std::move(classes_)); }

 private:
  std::string op_;
  bool same_policy_;
  std::shared_ptr<const registry::OperatorRecord> record_;
  std::vector<schema::Formula> formulas_;
  policy::PolicyView view_;
  std::vector<LockedClass> classes_;
};

/// Distinct differences, each with the number of classes that have it.
class Differences {
 public:
  void add(std::string text) {
    if (text.empty()) return;
    const auto at = std::ranges::find(all_, text, &Entry::text);
    if (at == all_.end()) {
      all_.push_back({std::move(text), 1});
    } else {
      ++at->classes;
    }
  }
  bool empty() const { return all_.empty(); }

  Status status(std::string_view name) const {
    std::string text = base::concat(name, " no longer matches this runtime, ", all_.size(),
                                    all_.size() == 1 ? " difference:" : " differences:");
    for (size_t i = 0; i < std::min(all_.size(), kMostDifferences); ++i) {
      text += "\n  " + all_[i].text;
      if (all_[i].classes > 1) text += base::concat(" (", all_[i].classes, " classes)");
    }
    if (all_.size() > kMostDifferences) {
      text += base::concat("\n  and ", all_.size() - kMostDifferences, " more");
    }
    return {Code::failed, "lock.misfit",
            text + "\nrestore the setup it was written for, or write a new one with `opmux lock`"};
  }

 private:
  struct Entry {
    std::string text;
    size_t classes;
  };
  std::vector<Entry> all_;
};

}  // namespace

std::string policy_hash(const LockSurroundings& now) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15u;
  uint64_t hash = 0;
  for (const auto& [name, record] : now.registry->operators) {
    const uint64_t own = now.policies->hash_for(name);
    if (own == 0) continue;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ own) * kPrime;
    hash ^= hash >> 31;
  }
  return hex16(hash);
}

Lockfile lockfile_of(const std::vector<Engine::DecidedClass>& decided,
                     const LockSurroundings& now) {
  Lockfile lock;
  lock.policy_hash = policy_hash(now);
  for (const Engine::DecidedClass& each : decided) {
    const schema::Schema& schema = *each.op->schema;
    lock.choices.push_back({schema.name, policy::to_string(schema, each.when),
                            each.implementation->id, each.implementation->build_id,
                            schema_hash(schema)});
  }
  std::ranges::sort(lock.choices);
  return lock;
}

Result<std::shared_ptr<const LockSet>> fit(const Lockfile& lock, std::string_view name,
                                           const LockSurroundings& now) {
  Differences differences;
  const std::string hash = policy_hash(now);
  const bool same_policy = hash == lock.policy_hash;
  if (!same_policy) {
    differences.add(base::concat("another policy is in force: ", hash, ", was ", lock.policy_hash,
                                 "; `opmux config show` prints it"));
  }
  std::map<std::string, OperatorFit> by_op;
  for (const LockedChoice& choice : lock.choices) {
    const auto at = by_op.try_emplace(choice.op, choice.op, now, same_policy).first;
    differences.add(at->second.add(choice));
  }
  if (!differences.empty()) return differences.status(name);
  auto set = std::make_shared<LockSet>();
  set->name = name;
  for (auto& [op, fitting] : by_op) set->by_op[op] = fitting.take();
  return std::shared_ptr<const LockSet>(std::move(set));
}

}  // namespace opmux::dispatch
