#include "registry/snapshot.hpp"

#include <algorithm>
#include <atomic>

namespace opmux::registry {

const OperatorRecord* RegistrySnapshot::find(std::string_view op) const {
  const Operators::Entry* const found = operators.find(op);
  return found == nullptr ? nullptr : found->second.get();
}

ImplementationPtr RegistrySnapshot::find_implementation(std::string_view id) const {
  const OperatorRecord* record = find(id.substr(0, id.find('/')));
  if (record == nullptr) return nullptr;
  const auto& all = record->implementations;
  const auto at = std::lower_bound(
      all.begin(), all.end(), id,
      [](const ImplementationPtr& a, std::string_view wanted) { return a->id < wanted; });
  return at != all.end() && (*at)->id == id ? *at : nullptr;
}

const ImplementationRecord* RegistrySnapshot::find(uint32_t number) const {
  for (const auto& [name, record] : operators) {
    for (const ImplementationPtr& implementation : record->implementations) {
      if (implementation->number == number) return implementation.get();
    }
  }
  return nullptr;
}

void put_operator(RegistrySnapshot& snapshot, OperatorRecord record) {
  static std::atomic<uint64_t> revisions{0};
  record.revision = revisions.fetch_add(1, std::memory_order_relaxed) + 1;
  std::sort(record.implementations.begin(), record.implementations.end(),
            [](const auto& a, const auto& b) { return a->id < b->id; });
  const std::string name = record.schema->name;
  if (const OperatorRecord* const before = snapshot.find(name)) {
    for (const ImplementationPtr& gone : before->implementations) {
      const auto count = snapshot.implementation_counts.find(gone->backend.get());
      if (--count->second == 0) snapshot.implementation_counts.erase(count);
    }
  }
  for (const ImplementationPtr& present : record.implementations) {
    ++snapshot.implementation_counts[present->backend.get()];
  }
  snapshot.operators.put(name, std::make_shared<const OperatorRecord>(std::move(record)));
}

}  // namespace opmux::registry
