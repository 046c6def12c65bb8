// Runs every wrong kernel through the very suite that right ones pass, and counts what is missed.
#include <algorithm>
#include <cstdio>
#include <map>
#include <span>

#include <opmux/conformance.hpp>
#include <opmux/opmux.hpp>

#include "seeded_bugs/faulty.hpp"

OPMUX_C_LINKAGE int32_t opmux_plugin_query_v1_reference(const opmux_host* host, opmux_plugin* out);

namespace opmux::seeded {
namespace {

constexpr double kRare = 0.1;

std::vector<Bug> all_bugs() {
  std::vector<Bug> all;
  for (const auto& family :
       {rms_norm_bugs(), norm_bugs(), activation_bugs(), softmax_bugs(), rotary_bugs(),
        product_bugs(), attention_bugs(), cache_bugs(), routing_bugs()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

/// The reference's own descriptors: what wrong kernels bend.
const opmux_impl& right_of(std::string_view op) {
  static const opmux_plugin plugin = [] {
    opmux_host host{};
    host.struct_size = sizeof host;
    host.abi_major = OPMUX_ABI_MAJOR;
    opmux_plugin out{};
    out.struct_size = sizeof out;
    opmux_plugin_query_v1_reference(&host, &out);
    return out;
  }();
  const opmux_backend& backend = plugin.backends[0];
  const std::span<const opmux_impl> impls(backend.impls, backend.impl_count);
  return *std::ranges::find_if(impls, [&](const opmux_impl& impl) {
    return std::string_view(impl.op.data, impl.op.size) == op;
  });
}

struct Seeded {
  Bug bug;
  const opmux_impl* right;

  static int32_t run(void* self, const opmux_call* call) {
    const Seeded& seeded = *static_cast<Seeded*>(self);
    Faulty faulty(*seeded.right, *call);
    return seeded.bug.run(faulty);
  }
  std::string id() const { return std::string(bug.op) + "/seeded." + std::string(bug.name); }
};

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

/// A runtime with kernels that bend the reference.
class Bent {
 public:
  explicit Bent(const std::vector<Bug>& kernels) {
    for (const Bug& kernel : kernels) seeded_.push_back({kernel, &right_of(kernel.op)});
    for (Seeded& one : seeded_) {
      Implementation implementation{.id = one.id(), .vendor = "seeded"};
      implementation.kernel.user_data = &one;
      implementation.kernel.run = &Seeded::run;
      implementation.flags = one.right->flags;
      runtime_.implement(implementation).value().keep();
    }
  }
  conformance::Report verify(conformance::Options options) {
    options.backends = {"seeded"};
    return conformance::verify(runtime_, options).value();
  }

 private:
  std::vector<Seeded> seeded_;
  Runtime runtime_ = Runtime::create({.environment = {{}}, .backends = false}).value();
};

/// The suite as `opmux verify --all` runs it.
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

/// False alarms among kernels that add in another order than the reference.
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
