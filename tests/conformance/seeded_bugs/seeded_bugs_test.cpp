// Runs every wrong kernel through the same suite that correct ones pass, and counts the missed
// ones.
#include <algorithm>
#include <cstdio>
#include <map>

#include <opmux/conformance.hpp>

#include "seeded_bugs/seeded.hpp"

namespace opmux::seeded {
namespace {

constexpr double kRare = 0.1;

struct Tally {
  size_t caught = 0, rare = 0;
  std::map<std::string_view, int> operators;
  std::vector<std::string> missed;
};

void count(const conformance::ImplementationReport& report, Tally& tally) {
  const double share =
      static_cast<double>(report.wrong) / static_cast<double>(std::max<uint64_t>(1, report.cases));
  std::printf("  %-62s %6.2f %%  %s\n", report.id.c_str(), 100 * share,
              report.findings.empty() ? "MISSED" : report.findings[0].kind.c_str());
  if (report.findings.empty()) tally.missed.push_back(report.id);
  if (!report.findings.empty()) ++tally.caught;
  if (share < kRare) ++tally.rare;
}

/// A runtime with kernels that modify the reference.
class Bent {
 public:
  explicit Bent(const std::vector<Bug>& kernels) : seeded_(kernels.begin(), kernels.end()) {
    implement(runtime_, seeded_);
  }
  conformance::Report verify(conformance::Options options) {
    options.backends = {"seeded"};
    return conformance::verify(runtime_, options).value();
  }

 private:
  std::vector<Seeded> seeded_;
  Runtime runtime_ = Runtime::create({.environment = {{}}, .backends = false}).value();
};

/// Runs the suite as `opmux verify --all` does.
Tally verify_bugs(bool count_wrong) {
  const std::vector<Bug> bugs = all_bugs();
  Bent bent(bugs);
  Tally tally;
  for (const Bug& bug : bugs) ++tally.operators[bug.op];
  const conformance::Report report = bent.verify({.count_wrong = count_wrong});
  for (const conformance::OperatorReport& op : report.operators) {
    for (const conformance::ImplementationReport& one : op.implementations) count(one, tally);
  }
  std::printf("caught %zu of %zu bugs in %zu operators\n", tally.caught, bugs.size(),
              tally.operators.size());
  for (const std::string& id : tally.missed) std::printf("missed: %s\n", id.c_str());
  EXPECT_GE(bugs.size(), 120u);
  EXPECT_GE(tally.operators.size(), 10u);
  EXPECT_GE(static_cast<double>(tally.caught), 0.99 * static_cast<double>(bugs.size()));
  return tally;
}

TEST(SeededBugs, are_caught) { verify_bugs(false); }

TEST(SeededBugs, are_mostly_rare) {
  const Tally tally = verify_bugs(true);
  std::printf("%zu of them are wrong in less than 10 %% of cases\n", tally.rare);
  EXPECT_GE(tally.rare, 60u);
}

/// Verifies the operators with floats of 8 and 4 bits as `opmux verify` does. Counting how many
/// cases of a wrong kernel are wrong takes twenty times as long as finding the first.
void verify_small_floats(bool count_wrong, uint64_t cases_of_right_kernels) {
  const std::vector<Bug> bugs = small_float_bugs();
  const conformance::Report report = Bent(bugs).verify({.count_wrong = count_wrong});
  Tally tally;
  for (const conformance::OperatorReport& op : report.operators) {
    for (const conformance::ImplementationReport& one : op.implementations) {
      if (count_wrong) {
        EXPECT_GE(one.cases, 200u) << one.id;
      }
      count(one, tally);
    }
  }
  EXPECT_EQ(tally.caught, bugs.size());
  std::printf("caught %zu of %zu bugs in %lu cases\n", tally.caught, bugs.size(),
              static_cast<unsigned long>(report.cases()));

  const std::vector<Bug> right{{"linear_w8a8", "right", [](Faulty& f) { return f.right(); }},
                               {"linear_w8a8", "in_floats", small_floats_in_f32},
                               {"linear_w4a16", "right", [](Faulty& f) { return f.right(); }},
                               {"linear_w4a16", "in_floats", small_floats_in_f32}};
  const conformance::Report fine =
      Bent(right).verify({.cases = cases_of_right_kernels, .count_wrong = true});
  for (const conformance::OperatorReport& op : fine.operators) {
    for (const conformance::ImplementationReport& one : op.implementations) {
      EXPECT_EQ(one.wrong, 0u) << one.id
                               << (one.findings.empty() ? "" : one.findings[0].to_string());
    }
  }
  std::printf("no alarm in %lu cases of right kernels\n", static_cast<unsigned long>(fine.cases()));
  EXPECT_GE(fine.cases(), right.size() * cases_of_right_kernels);
}

TEST(SmallFloats, wrong_kernels_are_caught_and_right_ones_are_not) {
  verify_small_floats(false, 120);
}

TEST(SmallFloats, wrong_cases_of_every_kernel_are_counted) { verify_small_floats(true, 600); }

/// Counts false alarms among kernels that add in another order than the reference.
void count_false_alarms(uint64_t cases, uint64_t least) {
  Bent bent(right_kernels());
  const conformance::Report report = bent.verify({.cases = cases, .seed = 99, .count_wrong = true});
  uint64_t wrong = 0;
  for (const conformance::OperatorReport& op : report.operators) {
    for (const conformance::ImplementationReport& one : op.implementations) {
      wrong += one.wrong;
      for (const conformance::Finding& finding : one.findings) {
        std::printf("%s", finding.to_string().c_str());
      }
    }
  }
  std::printf("%lu false alarms in %lu cases\n", static_cast<unsigned long>(wrong),
              static_cast<unsigned long>(report.cases()));
  EXPECT_GE(report.cases(), least);
  EXPECT_LE(wrong, report.cases() / 100000);
}

TEST(RightKernels, raise_no_alarm) { count_false_alarms(200, 2000); }

TEST(RightKernels, raise_no_alarm_in_a_hundred_thousand_cases) { count_false_alarms(9200, 100000); }

}  // namespace
}  // namespace opmux::seeded
