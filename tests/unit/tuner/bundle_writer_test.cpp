#include "tuner/bundle_writer.hpp"

#include <cstring>
#include <span>

#include "rows.hpp"
#include "tune/bundle_format.hpp"

namespace opmux::tuner {
namespace {

using testing::row;
using testing::set_of;
using tune::Bundle;
using tune::TuningSet;

Result<Bundle> open(const std::string& bytes) {
  return Bundle::open(std::as_bytes(std::span(bytes)));
}

Result<TuningSet> read(const std::string& bytes) {
  Result<Bundle> bundle = open(bytes);
  if (!bundle) return bundle.error();
  return bundle->read_all();
}

TuningSet two_operators() {
  TuningSet set = set_of({row(-0.8, 0.02, 5, 95), row(0.1, 0.02, 96, 4096)});
  set.machines.push_back({"AuthenticAMD 26-2-1 isa=avx2 states=e7 llc=32768K cores=8", ""});
  set.operators.push_back({"linear", 7, 1, {row(0.2)}});
  return set;
}

TEST(BundleWriter, rows_are_the_same_after_they_were_written_and_read) {
  const std::string bytes = write_bundle(two_operators()).value();
  const TuningSet again = read(bytes).value();
  ASSERT_EQ(again.operators.size(), 2u);
  EXPECT_EQ(again.machines, two_operators().machines);
  EXPECT_EQ(again.operators[0], two_operators().operators[1]) << "sections are sorted by operator";
  EXPECT_EQ(again.operators[1], two_operators().operators[0]);
  EXPECT_EQ(write_bundle(again).value(), bytes) << "the same rows give the same bytes";
}

TEST(BundleWriter, a_row_takes_at_most_96_bytes_and_its_texts_are_stored_once) {
  TuningSet set = set_of({});
  for (int64_t i = 0; i < 1000; ++i) set.operators[0].rows.push_back(row(-0.8, 0.02, i, i));
  const std::string bytes = write_bundle(set).value();
  EXPECT_LE(bytes.size(), 1000 * 96u);
}

TEST(BundleWriter, rows_of_one_operator_are_joined_and_sorted) {
  TuningSet set = set_of({row(-0.8, 0.02, 5, 95)});
  set.operators.push_back(set_of({row(0.1, 0.02, 1, 4)}).operators[0]);
  const TuningSet again = read(write_bundle(set).value()).value();
  ASSERT_EQ(again.operators.size(), 1u);
  ASSERT_EQ(again.operators[0].rows.size(), 2u);
  EXPECT_EQ(again.operators[0].rows[0].range.first, 1);
}

TEST(BundleWriter, two_rows_about_the_same_question_are_refused) {
  const Status refused = write_bundle(set_of({row(-0.8), row(-0.7)})).error();
  EXPECT_EQ(refused.reason(), "tune.bundle");
  EXPECT_NE(refused.message().find("two rows of matmul are about openblas.gemm and onednn.dense"),
            std::string_view::npos);
}

TEST(BundleWriter, rows_that_name_no_machine_are_refused) {
  TuningSet set = set_of({row()});
  set.machines.clear();
  EXPECT_EQ(write_bundle(set).error().reason(), "tune.bundle");
}

TEST(BundleWriter, texts_that_the_exported_form_could_not_have_are_refused) {
  const auto reason = [](auto&& change) {
    TuningSet set = set_of({row()});
    change(set, set.operators[0].rows[0]);
    const Result<std::string> written = write_bundle(set);
    return written ? std::string("none") : std::string(written.error().reason());
  };
  using tune::TuningRow;
  EXPECT_EQ(reason([](TuningSet&, TuningRow&) {}), "none");
  for (const char* const text : {"a#b", "a b", "a\nb", "a\tb", "\xc3\xa9"}) {
    EXPECT_EQ(reason([&](TuningSet& set, TuningRow&) { set.operators[0].op = text; }),
              "tune.bundle");
    EXPECT_EQ(reason([&](TuningSet&, TuningRow& r) { r.tool = text; }), "tune.section");
    EXPECT_EQ(reason([&](TuningSet&, TuningRow& r) { r.range.dim = text; }), "tune.section");
    EXPECT_EQ(reason([&](TuningSet&, TuningRow& r) { r.baseline.id = text; }), "tune.section");
    EXPECT_EQ(reason([&](TuningSet&, TuningRow& r) { r.baseline.build = text; }), "tune.section");
  }
  EXPECT_EQ(reason([](TuningSet& set, TuningRow&) { set.operators[0].op = ""; }), "tune.bundle");
  EXPECT_EQ(reason([](TuningSet& set, TuningRow&) { set.machines[0].hard = "two  spaces"; }),
            "tune.bundle");
  EXPECT_EQ(reason([](TuningSet& set, TuningRow&) { set.machines[0].soft = "#1"; }), "tune.bundle");
  EXPECT_EQ(reason([](TuningSet&, TuningRow& r) { r.implementation.id = "a@b"; }), "tune.section");
  EXPECT_EQ(reason([](TuningSet&, TuningRow& r) { r.range.dim = ""; }), "tune.section")
      << "a row for every size has no bounds";
}

TEST(BundleWriter, a_header_of_more_than_64_kb_is_refused) {
  TuningSet set = set_of({});
  for (int i = 0; i < 1000; ++i)
    set.operators.push_back({"operator_" + std::to_string(i), 1, 0, {row()}});
  EXPECT_EQ(write_bundle(set).error().reason(), "tune.bundle");
}

TEST(Bundle, every_changed_byte_of_the_header_is_noticed_when_it_is_opened) {
  const std::string bytes = write_bundle(two_operators()).value();
  tune::format::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t i = 0; i < header.header_size; ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(open(changed).has_value()) << "byte " << i;
  }
}

TEST(Bundle, every_changed_byte_of_a_section_is_noticed_when_its_rows_are_read) {
  const std::string bytes = write_bundle(two_operators()).value();
  tune::format::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t i = header.header_size; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const Result<Bundle> bundle = open(changed);
    ASSERT_TRUE(bundle.has_value()) << "byte " << i;
    size_t damaged = 0;
    for (const Bundle::Section& section : bundle->sections()) {
      const auto rows = Bundle::rows(section);
      if (rows) continue;
      ++damaged;
      EXPECT_EQ(rows.error().reason(), "tune.section");
    }
    EXPECT_EQ(damaged, 1u) << "byte " << i << ": the other operator keeps its rows";
  }
}

TEST(Bundle, a_truncated_file_is_refused_at_every_length) {
  const std::string bytes = write_bundle(two_operators()).value();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(open(bytes.substr(0, size)).has_value()) << size;
}

/// Bytes whose first row was changed and whose digests match.
template <class Change>
Result<TuningSet> read_changed_row(Change&& change) {
  std::string bytes = write_bundle(set_of({row()})).value();
  tune::format::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  tune::format::Row stored;
  std::memcpy(&stored, bytes.data() + header.header_size, sizeof stored);
  change(stored);
  std::memcpy(bytes.data() + header.header_size, &stored, sizeof stored);
  seal_bundle(bytes);
  return read(bytes);
}

TEST(Bundle, an_impossible_row_is_refused_though_its_digest_matches) {
  using Row = tune::format::Row;
  EXPECT_TRUE(read_changed_row([](Row&) {}).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.cell = 1u << 30; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.cell = r.dim; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.tool = UINT32_MAX; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.first = r.last + 1; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.low = r.log_ratio + 1; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.high = INT32_MAX; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.rigor = 3; }).has_value());
  EXPECT_FALSE(read_changed_row([](Row& r) { r.day = UINT32_MAX; }).has_value());
}

TEST(Bundle, a_bundle_of_another_version_is_named) {
  std::string bytes = write_bundle(set_of({row()})).value();
  bytes[8] = 2;
  seal_bundle(bytes);
  const Status refused = open(bytes).error();
  EXPECT_EQ(refused.reason(), "tune.bundle");
  EXPECT_NE(refused.message().find("version 2"), std::string_view::npos);
}

}  // namespace
}  // namespace opmux::tuner
