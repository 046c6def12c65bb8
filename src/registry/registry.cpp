#include "registry/registry.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/memory.hpp"
#include "base/text.hpp"

namespace opmux::registry {
namespace {

/// The refusal of a batch by a frozen registry. A batch without a backend has only operators.
Refusal refusal_by_freezing(const Batch& batch) {
  const BackendDraft& backend = batch.backend;
  if (!backend.name.empty()) return {backend.name, registry::frozen("implement")};
  return {backend.plugin, registry::frozen("define")};
}

/// Removes the implementations of one operator for which `gone` returns true and adds them to
/// `removed`.
template <class Gone>
void remove_implementations(RegistrySnapshot& next, const OperatorRecord& op, Gone&& gone,
                            std::vector<ImplementationPtr>& removed) {
  const size_t before = removed.size();
  std::ranges::copy_if(op.implementations, std::back_inserter(removed), gone);
  if (removed.size() == before) return;
  OperatorRecord changed = op;
  std::erase_if(changed.implementations, gone);
  put_operator(next, std::move(changed));
}

/// Removes those of `wanted` that are registered and returns them.
std::vector<ImplementationPtr> remove_listed(RegistrySnapshot& next,
                                             const std::vector<ImplementationPtr>& wanted) {
  std::vector<ImplementationPtr> removed;
  std::map<std::string_view, std::set<ImplementationPtr>> wanted_of;  // by operator
  for (const ImplementationPtr& one : wanted) wanted_of[one->op].insert(one);
  for (const auto& [name, listed] : wanted_of) {
    const auto* const entry = next.operators.find(name);
    if (entry == nullptr) continue;
    const std::shared_ptr<const OperatorRecord> op = entry->second;
    remove_implementations(
        next, *op, [&](const ImplementationPtr& one) { return listed.contains(one); }, removed);
  }
  return removed;
}

/// Removes all implementations of a backend and returns them.
std::vector<ImplementationPtr> remove_all_of(RegistrySnapshot& next, std::string_view backend) {
  std::vector<ImplementationPtr> removed;
  const RegistrySnapshot::Operators before = next.operators;
  for (const auto& [name, op] : before) {
    remove_implementations(
        next, *op, [&](const ImplementationPtr& one) { return one->backend->name() == backend; },
        removed);
  }
  return removed;
}

bool brings_something(const RegistrySnapshot& snapshot, const Backend* backend) {
  if (snapshot.implementation_counts.contains(backend)) return true;
  const auto answers = [&](const PointAnswer& answer) { return answer.backend.get() == backend; };
  return std::any_of(snapshot.points.begin(), snapshot.points.end(), [&](const auto& point) {
    const auto& all = point.second->answers;
    return std::any_of(all.begin(), all.end(), answers);
  });
}

void remove_answers(RegistrySnapshot& next, std::string_view backend) {
  std::erase_if(next.unclaimed, [&](const UnclaimedAnswer& unclaimed) {
    return unclaimed.answer.backend->name() == backend;
  });
  for (auto& [name, point] : next.points) {
    auto changed = std::make_shared<PointRecord>(*point);
    std::erase_if(changed->answers,
                  [&](const PointAnswer& answer) { return answer.backend->name() == backend; });
    point = std::move(changed);
  }
}

void mark_withdrawn(const std::vector<ImplementationPtr>& implementations) {
  for (const ImplementationPtr& implementation : implementations) {
    implementation->withdrawn.store(true, std::memory_order_release);
  }
}

/// Removes backends of the program that have nothing registered any more.
void remove_empty_backends(RegistrySnapshot& next, const std::vector<ImplementationPtr>& removed) {
  for (const ImplementationPtr& gone : removed) {
    const Backend* backend = gone->backend.get();
    if (backend->plugin().empty() && !brings_something(next, backend)) {
      next.backends.erase(backend->name());
    }
  }
}

/// Removes the implementations that were withdrawn when there was no memory for a new snapshot.
bool remove_withdrawn(RegistrySnapshot& next) {
  std::vector<ImplementationPtr> removed;
  const RegistrySnapshot::Operators before = next.operators;
  for (const auto& [name, op] : before) {
    remove_implementations(
        next, *op,
        [](const ImplementationPtr& one) { return one->withdrawn.load(std::memory_order_acquire); },
        removed);
  }
  remove_empty_backends(next, removed);
  return !removed.empty();
}

/// Moves the unclaimed answers for a newly declared point to that point.
void adopt_unclaimed(RegistrySnapshot& next, const PointSignature& signature,
                     std::vector<Refusal>* dropped) {
  for (const UnclaimedAnswer& waiting : next.unclaimed) {
    if (waiting.signature.name != signature.name) continue;
    Status bad = answer_declared_point(next, waiting.signature, waiting.answer);
    if (bad.ok() || dropped == nullptr) continue;
    dropped->push_back(
        {base::concat(signature.name, " of ", waiting.answer.backend->name()), std::move(bad)});
  }
  std::erase_if(next.unclaimed, [&](const UnclaimedAnswer& waiting) {
    return waiting.signature.name == signature.name;
  });
}

}  // namespace

template <class Edit>
void Registry::change(Edit&& edit) {
  if (removal_due_.exchange(false)) {
    try {
      publish(remove_withdrawn);
    } catch (const std::bad_alloc&) {
      removal_due_.store(true);
      throw;
    }
  }
  publish(std::forward<Edit>(edit));
}

template <class Edit>
void Registry::publish(Edit&& edit) {
  if (publisher_ == nullptr) {
    current_.update(std::forward<Edit>(edit));
    return;
  }
  const std::unique_ptr<Publication> publication = publisher_->begin();
  const bool changed = current_.update(std::forward<Edit>(edit), [&](auto& next) {
    ChangeTo change(next);
    publication->publish(change);
  });
  if (changed) (void)publication->finish();
}

void Registry::set_cpu_features(base::CpuFeatures cpu) {
  publish([&](RegistrySnapshot& next) {
    next.cpu = std::make_shared<const base::CpuFeatures>(std::move(cpu));
    return true;
  });
}

void Registry::freeze(bool on) noexcept {
  current_.between_updates([&] { frozen_.store(on, std::memory_order_release); });
}

Status Registry::define(std::string_view schema_text, OperatorMarks marks) {
  Status outcome;
  change([&](RegistrySnapshot& next) {
    bool changed = false;
    outcome = define_operator(next, schema_text, marks, changed);
    if (changed && frozen()) outcome = registry::frozen("define");
    return changed && outcome.ok();
  });
  return outcome;
}

BatchResult Registry::add(const Batch& batch, bool all_or_nothing) {
  BatchResult result;
  change([&](RegistrySnapshot& next) {
    if (!frozen()) return apply(batch, all_or_nothing, next, result);
    result.refused.push_back(refusal_by_freezing(batch));
    return false;
  });
  return result;
}

std::vector<BatchResult> Registry::add_each(const std::vector<Batch>& batches) {
  std::vector<BatchResult> results(batches.size());
  change([&](RegistrySnapshot& next) {
    bool changed = false;
    for (size_t i = 0; i < batches.size(); ++i) {
      if (frozen()) {
        results[i].refused.push_back(refusal_by_freezing(batches[i]));
        continue;
      }
      // A refused batch leaves partial changes in `trial`, which is then dropped.
      RegistrySnapshot trial = next;
      if (!apply(batches[i], true, trial, results[i])) continue;
      next = std::move(trial);
      changed = true;
    }
    return changed;
  });
  return results;
}

Result<std::vector<ImplementationPtr>> Registry::add_together(
    std::span<const OperatorDraft> operators, std::span<const Batch> batches) {
  Result<std::vector<ImplementationPtr>> added{std::vector<ImplementationPtr>()};
  change([&](RegistrySnapshot& next) {
    bool changed = false;
    if (frozen() && !batches.empty()) {
      added = registry::frozen("implement");
    } else {
      added = apply_together(operators, batches, next, changed);
      if (added && changed && frozen()) added = registry::frozen("define");
    }
    return added && changed;
  });
  return added;
}

void Registry::withdraw(const std::vector<ImplementationPtr>& implementations) noexcept {
  mark_withdrawn(implementations);
  const bool removed = base::if_memory([&] {
    change([&](RegistrySnapshot& next) {
      const std::vector<ImplementationPtr> listed = remove_listed(next, implementations);
      remove_empty_backends(next, listed);
      return !listed.empty();
    });
  });
  if (removed) return;
  removal_due_.store(true);
  if (publisher_ != nullptr) publisher_->stop_withdrawn();
}

void Registry::withdraw_backend(std::string_view name) { withdraw_backends({std::string(name)}); }

void Registry::withdraw_backends(const std::vector<std::string>& names) {
  change([&](RegistrySnapshot& next) {
    bool changed = false;
    for (const std::string& name : names) {
      const auto at = next.backends.find(name);
      if (at == next.backends.end()) continue;
      mark_withdrawn(remove_all_of(next, name));
      remove_answers(next, name);
      next.backends.erase(at);
      changed = true;
    }
    return changed;
  });
}

Status Registry::declare_point(std::string_view text, std::vector<Refusal>* dropped) {
  const Result<PointSignature> signature = parse_point_signature(text);
  if (!signature) return signature.error();
  Status outcome;
  change([&](RegistrySnapshot& next) {
    const auto at = next.points.find(signature->name);
    if (at != next.points.end()) {
      if (at->second->signature != *signature) {
        outcome = {Code::already_exists, "point.signature",
                   base::concat("specialization point ", at->second->signature.canonical(),
                                " cannot be redeclared as ", signature->canonical())};
      }
      return false;
    }
    next.points[signature->name] = std::make_shared<PointRecord>(PointRecord{*signature, {}});
    adopt_unclaimed(next, *signature, dropped);
    return true;
  });
  return outcome;
}

Status Registry::answer_point(std::string_view text, std::string_view backend,
                              PointFunction answer) {
  const Result<PointSignature> signature = parse_point_signature(text);
  if (!signature) return signature.error();
  Status outcome;
  change([&](RegistrySnapshot& next) {
    if (frozen()) {
      outcome = registry::frozen("answer_point");
      return false;
    }
    const auto at = next.backends.find(backend);
    if (at == next.backends.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : next.backends) known.push_back(name);
      outcome = {Code::not_found, "point.backend",
                 base::concat("there is no backend '", backend, "' to answer ", signature->name,
                              base::suggestion(backend, known))};
      return false;
    }
    outcome = answer_declared_point(
        next, *signature, {at->second, std::make_shared<const PointFunction>(std::move(answer))});
    return outcome.ok();
  });
  return outcome;
}

void Registry::withdraw_answer(std::string_view signature, std::string_view backend) {
  const std::string_view name = signature.substr(0, signature.find('('));
  change([&](RegistrySnapshot& next) {
    const auto found = next.points.find(name);
    if (found == next.points.end()) return false;
    auto changed = std::make_shared<PointRecord>(*found->second);
    const size_t erased = std::erase_if(changed->answers, [&](const PointAnswer& answer) {
      return answer.backend->name() == backend;
    });
    found->second = std::move(changed);
    return erased != 0;
  });
}

}  // namespace opmux::registry
