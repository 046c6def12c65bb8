#include "tuner/run_report.hpp"

#include "rows.hpp"

namespace opmux::tuner {
namespace {

using testing::row;

MeasuredCell cell() {
  MeasuredCell made;
  made.op = "matmul";
  made.schema_hash = 7;
  made.cell = row().cell;
  made.ranges.push_back({{"M", 1, 4}, {"onednn.dense", "b1"}, {row(0.001, 0.002, 1, 4)}});
  made.ranges.push_back({{"M", 5, 95}, {"onednn.dense", "b1"}, {row()}});
  made.ranges.push_back({{"M", 96, 256}, {"onednn.dense", "b1"}, {}});
  return made;
}

TEST(RunReport, says_what_changes_and_by_how_much) {
  EXPECT_EQ(
      report_of(cell()),
      "matmul f32,f32,f32 K=2048 N=2048 threads=1 eager\n"
      "  M=1..4           onednn.dense stays; openblas.gemm is as fast as onednn.dense, "
      "1.00x [0.99, 1.01]; 20 rounds, confirmed\n"
      "  M=5..95          onednn.dense -> openblas.gemm  2.23x [2.10, 2.36] faster than "
      "onednn.dense; 20 rounds, confirmed\n"
      "  M=96..256        onednn.dense stays; no other implementation was compared with it\n");
}

TEST(RunReport, says_what_disturbed_races_without_a_comparison) {
  MeasuredCell made = cell();
  made.ranges = {
      {{"M", 17, 256}, {"onednn.dense", "b1"}, {}, 3, tune::race::Noise::context_switch}};
  EXPECT_EQ(report_of(made),
            "matmul f32,f32,f32 K=2048 N=2048 threads=1 eager\n"
            "  M=17..256        onednn.dense stays; nothing was compared, because another thread "
            "disturbed 3 races: measure again with --resume when the machine is idle\n");
}

TEST(RunReport, says_what_was_left_out_and_that_it_is_not_finished) {
  MeasuredCell made = cell();
  made.ranges.clear();
  made.notes.push_back("acme.fast was left out: y[0,1] is 2, expected 1");
  made.checked = 3;
  made.disagreed = 1;
  made.complete = false;
  EXPECT_EQ(report_of(made),
            "matmul f32,f32,f32 K=2048 N=2048 threads=1 eager\n"
            "  1 of 3 random values had another result than their range, "
            "which was divided there\n"
            "  acme.fast was left out: y[0,1] is 2, expected 1\n"
            "  not finished; --resume continues\n");
}

TEST(RunReport, rows_of_cells_are_those_of_the_last_measurement) {
  MeasuredCell again = cell();
  again.ranges = {{{"M", 50, 60}, {"onednn.dense", "b1"}, {row(-0.1, 0.02, 50, 60)}}};
  const tune::TuningSet set = rows_of({cell(), again}, {"cpu", "kernel"});
  size_t rows = 0;
  for (const tune::OperatorRows& one : set.operators) {
    EXPECT_EQ(one.schema_hash, 7u);
    rows += one.rows.size();
  }
  EXPECT_EQ(rows, 4u) << "1 to 4, 5 to 49, 50 to 60 and 61 to 95";
  EXPECT_EQ(set.machines, (std::vector<tune::Machine>{{"cpu", "kernel"}}));
}

}  // namespace
}  // namespace opmux::tuner
