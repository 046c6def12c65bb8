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
  for (const auto& family : {rms_norm_bugs(), norm_bugs(), activation_bugs(), softmax_bugs(),
                             rotary_bugs(), product_bugs(), attention_bugs(), cache_bugs()}) {
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

class SeededBugs : public testing::Test {
 protected:
  SeededBugs() {
    for (const Bug& bug : all_bugs()) {
      seeded_.push_back({bug, &right_of(bug.op)});
      ++tally_.operators[bug.op];
    }
    for (Seeded& one : seeded_) {
      Implementation implementation{.id = one.id(), .vendor = "seeded"};
      implementation.kernel.user_data = &one;
      implementation.kernel.run = &Seeded::run;
      implementation.flags = one.right->flags;
      runtime_.implement(implementation).value().keep();
    }
  }
  /// The suite as `opmux verify --all` runs it.
  void verify(bool count_wrong) {
    const auto report =
        conformance::verify(runtime_, {.backends = {"seeded"}, .count_wrong = count_wrong}).value();
    for (const conformance::OperatorReport& op : report.operators) {
      for (const conformance::ImplementationReport& one : op.implementations) count(one, tally_);
    }
    std::printf("caught %zu of %zu bugs in %zu operators\n", tally_.caught, seeded_.size(),
                tally_.operators.size());
    for (const std::string& id : tally_.missed) std::printf("missed: %s\n", id.c_str());
    EXPECT_GE(seeded_.size(), 120u);
    EXPECT_GE(tally_.operators.size(), 10u);
    EXPECT_GE(static_cast<double>(tally_.caught), 0.99 * static_cast<double>(seeded_.size()));
  }
  std::vector<Seeded> seeded_;
  Runtime runtime_ = Runtime::create({.environment = {{}}, .backends = false}).value();
  Tally tally_;
};

TEST_F(SeededBugs, are_caught) { verify(false); }

TEST_F(SeededBugs, are_mostly_rare) {
  verify(true);
  std::printf("%zu of them are wrong in less than 10 %% of cases\n", tally_.rare);
  EXPECT_GE(tally_.rare, 60u);
}

}  // namespace
}  // namespace opmux::seeded
