#include "tuner/aged_rows.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "tune/bundle_file.hpp"

namespace opmux::tuner {
namespace {

/// The operator, the cell and the dimension that varies.
using CellKey = std::tuple<std::string, tune::Cell, std::string>;

struct Found {
  tune::Range range;
  bool is_current = false;  ///< has rows of this kernel and microcode
};

void read_rows(const tune::BundleFile& file, const tune::Machine& here,
               std::map<CellKey, Found>& found) {
  for (const tune::Bundle::Section& section : file.bundle().sections()) {
    const tune::Validity validity =
        tune::validity_of(file.bundle().machines()[section.machine], here);
    if (validity == tune::Validity::foreign) continue;
    const Result<std::vector<tune::TuningRow>> rows = file.rows(section);
    if (!rows) continue;
    for (const tune::TuningRow& row : *rows) {
      const auto [at, added] =
          found.try_emplace({section.op, row.cell, row.range.dim}, Found{row.range});
      tune::Range& range = at->second.range;
      range.first = std::min(range.first, row.range.first);
      range.last = std::max(range.last, row.range.last);
      at->second.is_current |= validity == tune::Validity::current;
    }
  }
}

}  // namespace

std::vector<AgedRows> aged_rows(std::span<const std::string> paths, const tune::Machine& here) {
  std::map<CellKey, Found> found;
  for (const std::string& path : paths) {
    if (const Result<tune::BundleFile> file = tune::BundleFile::open(path); file)
      read_rows(*file, here, found);
  }
  std::vector<AgedRows> aged;
  for (const auto& [key, rows] : found) {
    if (!rows.is_current) aged.push_back({std::get<0>(key), std::get<1>(key), rows.range});
  }
  return aged;
}

}  // namespace opmux::tuner
