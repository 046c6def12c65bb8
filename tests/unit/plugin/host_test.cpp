#include "plugin/host.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace opmux::plugin {
namespace {

using testing::ElementsAre;

TEST(Host, passes_log_lines_and_device_errors_to_listeners) {
  std::vector<std::string> heard;
  const opmux_host& host = process_host();
  {
    const HostListener listener({[&](int level, std::string_view text) {
                                   heard.push_back(std::to_string(level) + std::string(text));
                                 },
                                 [&](Device device, void*, int32_t code) {
                                   heard.push_back(name_of(device) + "=" + std::to_string(code));
                                 }});
    host.log(host.user_data, 2, opmux_str_of("warm"));
    host.log(host.user_data, 99, opmux_str_of("hot"));
    host.report_device_error(host.user_data, {OPMUX_DEVICE_CUDA, 1}, nullptr, 700);
  }
  host.log(host.user_data, 2, opmux_str_of("unheard"));
  EXPECT_THAT(heard, ElementsAre("2warm", "3hot", "cuda:1=700"));
}

TEST(Host, survives_invalid_lines_and_throwing_listeners) {
  std::vector<std::string> heard;
  const opmux_host& host = process_host();
  const HostListener listener(
      {[&](int, std::string_view text) { heard.emplace_back(text); }, nullptr});
  host.log(host.user_data, 0, {nullptr, 100});
  host.log(host.user_data, 0, {"x", SIZE_MAX});
  host.report_device_error(host.user_data, {1, 0}, nullptr, 1);
  EXPECT_THAT(heard, ElementsAre("(a log line that is not valid text)",
                                 "(a log line that is not valid text)"));
  const HostListener thrower({[](int, std::string_view) { throw std::runtime_error("x"); }, {}});
  host.log(host.user_data, 0, opmux_str_of("a"));
}

TEST(Host, has_no_feature_beyond_its_version) {
  EXPECT_EQ(process_host().has(nullptr, opmux_str_of("anything")), 0);
}

}  // namespace
}  // namespace opmux::plugin
