#include "tuner/overlay.hpp"

#include <algorithm>

#include "rows.hpp"
#include "tuner/bundle_writer.hpp"

namespace opmux::tuner {
namespace {

using testing::row;
using testing::set_of;
using tune::TuningRow;
using tune::TuningSet;

/// The ranges of all rows and their log ratios, in order.
std::vector<std::tuple<int64_t, int64_t, double>> ranges(const TuningSet& set) {
  std::vector<std::tuple<int64_t, int64_t, double>> all;
  for (const tune::OperatorRows& one : set.operators) {
    for (const TuningRow& each : one.rows)
      all.emplace_back(each.range.first, each.range.last, each.log_ratio);
  }
  std::ranges::sort(all);
  return all;
}

TEST(Overlay, new_rows_replace_old_ones_and_cut_them) {
  const TuningSet before = set_of({row(-0.5, 0.02, 1, 4), row(-0.8, 0.02, 5, 95)});
  const TuningSet after = overlay(before, set_of({row(-0.9, 0.02, 10, 20)}));
  EXPECT_EQ(ranges(after), (std::vector<std::tuple<int64_t, int64_t, double>>{
                               {1, 4, -0.5}, {5, 9, -0.8}, {10, 20, -0.9}, {21, 95, -0.8}}));
  EXPECT_TRUE(write_bundle(after)) << "it can be written";
}

TEST(Overlay, rows_of_other_cells_operators_and_machines_stay) {
  TuningRow other_cell = row(-0.5);
  other_cell.cell.threads = 2;
  TuningSet before = set_of({row(-0.8), other_cell});
  before.machines.push_back({"another processor", "kernel=1"});
  before.operators.push_back({"linear", 5, 0, {row(-0.3)}});
  before.operators.push_back({"matmul", 5, 1, {row(-0.2)}});
  const TuningSet after = overlay(before, set_of({row(-0.9)}));
  EXPECT_EQ(ranges(after), (std::vector<std::tuple<int64_t, int64_t, double>>{
                               {5, 95, -0.9}, {5, 95, -0.5}, {5, 95, -0.3}, {5, 95, -0.2}}));
  EXPECT_EQ(after.machines.size(), 2u);
}

TEST(Overlay, rows_of_another_kernel_or_schema_are_replaced) {
  TuningSet aged = set_of({row(-0.8)});
  aged.machines[0].soft = "kernel=5.10 microcode=0x0";
  EXPECT_EQ(ranges(overlay(aged, set_of({row(-0.9)}))).size(), 1u);
  TuningSet old_schema = set_of({row(-0.8, 0.02, 100, 200)});
  old_schema.operators[0].schema_hash = 1;
  EXPECT_EQ(ranges(overlay(old_schema, set_of({row(-0.9)}))).size(), 1u);
}

TEST(Overlay, an_empty_set_gets_the_rows) {
  EXPECT_EQ(ranges(overlay({}, set_of({row(-0.9)}))).size(), 1u);
  EXPECT_EQ(overlay(set_of({row(-0.9)}), {}), set_of({row(-0.9)}));
}

}  // namespace
}  // namespace opmux::tuner
