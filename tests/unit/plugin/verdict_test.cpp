#include "plugin/probe/verdict.hpp"

#include <gtest/gtest.h>

#include <opmux/abi.h>

namespace opmux::plugin {
namespace {

ProbeResult whole_verdict() {
  ProbeResult verdict;
  Manifest& manifest = verdict.manifest;
  manifest.name = "acme";
  manifest.version = "1.2\tbeta";
  manifest.vendor = "Acme \\ Sons";
  manifest.build_id = "00ff";
  manifest.flags = OPMUX_PLUGIN_UNLOADABLE;
  manifest.operators = {"acme.swish(out Tensor y[N],\n  Tensor x[N])"};
  manifest.points = {"tile() -> int"};
  manifest.backends = {{"acme", "acme", OPMUX_KIND_VENDOR, 1, 2, {{"acme.swish", "v1"}}},
                       {"acme_two", "", OPMUX_KIND_DEFAULT, 1, 0, {}}};
  verdict.missing = {"landlock", "ipc_namespace"};
  return verdict;
}

std::string reason_of(std::string_view text) {
  const Result<ProbeResult> read = parse_verdict(text);
  return read ? "" : std::string(read.error().reason());
}

TEST(ProbeResult, reads_back_as_it_was_written) {
  EXPECT_EQ(parse_verdict(to_text(whole_verdict())).value(), whole_verdict());
  const ProbeResult crash{"probe.crash", "SIGSEGV at address 0x10", "query", 11, 16, {}};
  EXPECT_EQ(parse_verdict(to_text(crash)).value(), crash);
}

TEST(ProbeResult, refuses_a_truncated_text) {
  const std::string whole = to_text(whole_verdict());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(reason_of(std::string_view(whole).substr(0, size)), "probe.verdict") << size;
  }
}

TEST(ProbeResult, refuses_unknown_records) {
  const std::string whole = to_text(whole_verdict());
  EXPECT_EQ(reason_of(whole + "more\n"), "probe.verdict");
  EXPECT_EQ(reason_of("opmux-verdict 2\nplugin\ta\t\t\t\t0\nend\n"), "probe.verdict");
  EXPECT_EQ(reason_of("opmux-verdict 1\nend\n"), "probe.verdict") << "the plugin has no name";
  for (const char* line : {"surprise", "plugin\ta", "plugin\ta\t\t\t\tmany", "impl\top\tv1",
                           "operator\tx\\y", "operator\tx\\", "operator\t\x01", "code\t\ttext"}) {
    EXPECT_EQ(reason_of(std::string("opmux-verdict 1\nplugin\ta\t\t\t\t0\n") + line + "\nend\n"),
              "probe.verdict")
        << line;
  }
  EXPECT_EQ(reason_of(std::string(kLongestVerdict + 1, 'x')), "probe.verdict");
}

}  // namespace
}  // namespace opmux::plugin
