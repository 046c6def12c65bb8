#include "base/status.hpp"

#include <gtest/gtest.h>

namespace opmux::base {
namespace {

TEST(ErrorSink, returns_the_written_data) {
  ErrorSink sink;
  write_error(sink.c(), OPMUX_FAILED, "no device");
  sink.c()->code = opmux_str_of("acme.no_device");
  EXPECT_EQ(sink.c()->outcome, OPMUX_FAILED);
  EXPECT_EQ(sink.text(), "no device");
  EXPECT_EQ(sink.code(), "acme.no_device");
}

TEST(ErrorSink, truncates_a_text_that_does_not_fit) {
  ErrorSink sink;
  write_error(sink.c(), OPMUX_FAILED, std::string(5000, 'x'));
  EXPECT_EQ(sink.text(), std::string(kErrorCapacity, 'x'));
}

TEST(ErrorSink, survives_an_invalid_size_and_pointer) {
  ErrorSink sink;
  write_error(sink.c(), OPMUX_FAILED, "short");
  sink.c()->text_size = size_t{1} << 60;
  sink.c()->text = nullptr;
  EXPECT_EQ(sink.text().size(), kErrorCapacity);
  EXPECT_EQ(sink.text().substr(0, 5), "short");
}

TEST(ErrorSink, replaces_bytes_that_would_disturb_a_log) {
  ErrorSink sink;
  write_error(sink.c(), OPMUX_FAILED, "a\n\x1b[31mb");
  EXPECT_EQ(sink.text(), "a??[31mb");
}

TEST(ErrorSink, ignores_a_malformed_code) {
  ErrorSink sink;
  sink.c()->code = opmux_str_of("Not A Word");
  EXPECT_EQ(sink.code(), "");
  sink.c()->code = {"x", size_t{1} << 60};
  EXPECT_EQ(sink.code(), "");
}

TEST(ErrorSink, writing_without_a_sink_or_without_room_does_nothing) {
  write_error(nullptr, OPMUX_FAILED, "text");
  opmux_error none{};
  write_error(&none, OPMUX_FAILED, "text");
  EXPECT_EQ(none.text_size, 0u);
  EXPECT_EQ(none.outcome, OPMUX_FAILED);
}

}  // namespace
}  // namespace opmux::base
