#include "tuner/tuning_text.hpp"

#include "rows.hpp"

namespace opmux::tuner {
namespace {

using testing::row;
using testing::set_of;
using tune::TuningSet;

constexpr std::string_view kText =
    "opmux-tuning 1 measurement=1\n"
    "\n"
    "machine GenuineIntel 6-85-7 isa=avx2,fma states=e7 llc=36608K cores=2\n"
    "soft kernel=6.1.0 microcode=0x1\n"
    "\n"
    "operator matmul schema=00f1c2d3e4b5a697\n"
    "cell f32,f32,f32 K=2048 N=2048 threads=1 eager\n"
    "row M=5..95 openblas.gemm@c3d4 vs onednn.dense@a1b2 log=-0.8000 low=-0.8600 high=-0.7400 "
    "rounds=20 rigor=confirmed date=2026-11-16 tool=0.1.0 host=9f86d081884c7d65  "
    "# 2.23x [2.10, 2.36] faster than onednn.dense\n";

TEST(TuningText, says_every_number_and_the_result_in_words) {
  EXPECT_EQ(text_of(set_of({row()})), kText);
}

TEST(TuningText, rows_are_the_same_after_they_were_written_and_read) {
  TuningSet set = set_of({row(-0.8, 0.02, 5, 95), row(0.123456, 0.0003, 96, INT64_MAX)});
  set.operators[0].rows.push_back(row(0.5));
  set.operators[0].rows.back().range = {};
  set.operators[0].rows.back().cell.captured = true;
  set.machines.push_back({"AuthenticAMD 26-2-1", ""});
  set.operators.push_back({"linear", 0, 1, {row(-19.99, 1)}});
  EXPECT_EQ(read_text(text_of(set)).value(), set);
}

std::string message_of(std::string text) {
  const Result<TuningSet> set = read_text(text);
  EXPECT_FALSE(set.has_value()) << text;
  return set ? "" : std::string(set.error().message());
}

std::string changed(std::string_view from, std::string_view to) {
  std::string text(kText);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TuningText, a_wrong_line_is_named_with_what_was_expected) {
  EXPECT_EQ(message_of(""), "line 1: the first line must be 'opmux-tuning 1 ...'");
  EXPECT_EQ(message_of(std::string(kText) + '\0'), "line 1: the text has a zero byte");
  EXPECT_EQ(message_of("opmux-tuning 2 measurement=1\n"),
            "line 1: the first line must be 'opmux-tuning 1 ...'");
  EXPECT_EQ(message_of(changed("log=-0.8000", "log=fast")),
            "line 8: 'fast' is not a number for log=");
  EXPECT_EQ(message_of(changed("log=-0.8000", "log=-0.7")),
            "line 8: log must be between low and high");
  EXPECT_EQ(message_of(changed("M=5..95", "M=95..5")), "line 8: a range is DIM=FIRST..LAST or *");
  EXPECT_EQ(message_of(changed("2026-11-16", "2026-02-30")), "line 8: a date is YYYY-MM-DD");
  EXPECT_EQ(message_of(changed("rigor=confirmed", "rigor=certain")),
            "line 8: rigor is quick, full or confirmed");
  EXPECT_EQ(message_of(changed(" vs ", " and ")),
            "line 8: 'vs' and the baseline must follow the implementation");
  EXPECT_EQ(message_of(changed("rounds=20", "turns=20")),
            "line 8: expected rounds=..., found 'turns=20'");
  EXPECT_EQ(message_of(changed("  # 2.23x", " more")),
            "line 8: unexpected 'more [2.10, 2.36] faster than onednn.dense'");
  EXPECT_EQ(message_of(changed("operator matmul", "operation matmul")),
            "line 6: unknown word 'operation'");
  EXPECT_EQ(message_of(changed(
                "machine GenuineIntel 6-85-7 isa=avx2,fma states=e7 llc=36608K cores=2\n", "")),
            "line 3: a machine must come first");
  EXPECT_EQ(message_of(changed("cell f32,f32,f32 K=2048 N=2048 threads=1 eager\n", "")),
            "line 7: a row belongs to a cell, which must come first");
  EXPECT_EQ(message_of(changed("K=2048 N=2048", "N=2048 K=2048")),
            "line 7: cell 'f32,f32,f32 N=2048 K=2048 threads=1 eager': the dimensions are not in "
            "the order of their names");
  EXPECT_EQ(message_of(changed("threads=1 eager", "threads=0 eager")),
            "line 7: cell 'f32,f32,f32 K=2048 N=2048 threads=0 eager': threads= needs a number of "
            "at least 1");
}

TEST(TuningText, the_words_of_a_result_follow_the_verdict) {
  EXPECT_EQ(describe(row(0.3)), "0.74x [0.70, 0.79], slower than onednn.dense");
  EXPECT_EQ(describe(row(0.0, 0.001)), "as fast as onednn.dense, 1.00x [1.00, 1.00]");
  EXPECT_EQ(describe(row(0.0, 0.1)), "unclear against onednn.dense, 1.00x [0.74, 1.35]");
}

}  // namespace
}  // namespace opmux::tuner
