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
  if (now == nullptr) return nullptr;
  const std::vector<TuningRow> own = own_.with([&](const OwnRows& all) {
    const auto found = all.find(op.schema->name);
    return found == all.end() ? std::vector<TuningRow>() : found->second;
  });
  return now->rows_of(op, own);
}

bool TuningTable::add(const std::string& op, TuningRow row) {
  return own_.with([&](OwnRows& all) {
    std::vector<TuningRow>& rows = all[op];
    if (rows.size() == kMostOwn) return false;
    rows.push_back(std::move(row));
    return true;
  });
}

void TuningTable::log_problems() const {
  if (const Current now = bundles(); now != nullptr) now->log_problems();
}

std::vector<FoundBundle> TuningTable::found() const {
  const Current now = bundles();
  return now == nullptr ? std::vector<FoundBundle>() : now->found();
}

}  // namespace opmux::tune
