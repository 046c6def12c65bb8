#include "tune/tuning_table.hpp"

#include <utility>

namespace opmux::tune {

void TuningTable::open(const BundlePlaces& places, const Machine& here) {
  here_ = here;
  open(places);
}

void TuningTable::open(const BundlePlaces& places) {
  places_ = places;
  (void)reopen();
}

TuningTable::Current TuningTable::read() const {
  return std::make_shared<const BundleSet>(log_, places_, here_);
}

std::set<std::string> TuningTable::reopen() {
  std::set<std::string> concerned;
  bundles_.update([&](Current& current) {
    Current next = read();
    concerned = next->operators();
    if (current != nullptr) concerned.merge(current->operators());
    current = std::move(next);
    return true;
  });
  return concerned;
}

std::shared_ptr<const RowIndex> TuningTable::rows_of(const registry::OperatorRecord& op) const {
  const Current now = bundles();
  return now == nullptr ? nullptr : now->rows_of(op);
}

void TuningTable::log_problems() const {
  if (const Current now = bundles(); now != nullptr) now->log_problems();
}

std::vector<FoundBundle> TuningTable::found() const {
  const Current now = bundles();
  return now == nullptr ? std::vector<FoundBundle>() : now->found();
}

}  // namespace opmux::tune
