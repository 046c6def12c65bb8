#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "replay/capture.hpp"
#include "replay/recording.hpp"
#include "temporary_folder.hpp"

namespace opmux::replay {
namespace {

RecordedTensor matrix(Contents contents) {
  RecordedTensor tensor;
  tensor.dtype = f32;
  tensor.shape = {2, 3};
  tensor.strides = {4, 1};
  tensor.alignment = 64;
  tensor.contents = contents;
  return tensor;
}

Recording sample() {
  Recording r;
  r.version = "0.1.0";
  r.op = "rms_norm";
  r.schema = "rms_norm(out Tensor y[..., H], Tensor x[..., H])";
  r.implementation = "rms_norm/acme.v1";
  r.build_id = "0badcafe";
  r.cause = Cause::diverged;
  r.reason = "shadow.value";
  r.says = "two\nlines \\ and \x80";
  r.element = RecordedElement{"y", {1, 2}, 1.5, std::numeric_limits<double>::infinity(), 3e-7};
  r.call_class = "f32 H<=4 rows<=2 on cpu:0";
  r.policy_hash = "0123456789abcdef";
  r.cpu = "avx2,fma";
  r.ambient = 4;
  r.max_threads = 3;
  r.arguments.resize(9);
  r.arguments[0] = {"y", ArgTag::tensor, matrix(Contents::written), 0, 0, {}, {}};
  r.arguments[1] = {"x", ArgTag::tensor, matrix(Contents::known), 0, 0, {}, {}};
  r.arguments[0].tensor.same_as = "x";
  std::vector<std::byte> bytes(24, std::byte{'\n'});
  keep_elements(r.arguments[1].tensor, bytes, true);
  r.arguments[2] = {"weight", ArgTag::none, {}, 0, 0, {}, {}};
  r.arguments[3] = {"eps", ArgTag::floating, {}, 0, 1e-6, {}, {}};
  r.arguments[4] = {"causal", ArgTag::logical, {}, 1, 0, {}, {}};
  r.arguments[5] = {"style", ArgTag::enumeration, {}, 1, 0, {}, {}};
  r.arguments[6] = {"window", ArgTag::integer, {}, -5, 0, {}, {}};
  r.arguments[7] = {"word", ArgTag::string, {}, 0, 0, "a b\tc", {}};
  r.arguments[8] = {"sizes", ArgTag::integer_list, {}, 0, 0, {}, {1, -2, 3}};
  return r;
}

/// A file with a changed header and a matching digest.
std::string changed(std::string_view from, std::string_view to) {
  std::string bytes = to_file(sample());
  const size_t at = bytes.find(from);
  EXPECT_NE(at, bytes.npos) << from;
  bytes.replace(at, from.size(), to);
  const size_t body = bytes.find('\n', bytes.find("sha256 ")) + 1;
  const std::string digest =
      base::sha256_hex(std::as_bytes(std::span(std::string_view(bytes).substr(body))));
  return base::concat("opmux replay 1\nsha256 ", digest, "\n", bytes.substr(body));
}

std::string problem(std::string_view bytes) {
  const auto read = parse_file(bytes, "a file");
  return read ? "" : std::string(read.error().message());
}

TEST(ReplayFile, returns_the_written_data) {
  const std::string bytes = to_file(sample());
  const auto read = parse_file(bytes, "a file");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_file(*read), bytes);
  EXPECT_EQ(read->says, sample().says);
  EXPECT_EQ(read->arguments[1].tensor.bytes, sample().arguments[1].tensor.bytes);
  EXPECT_EQ(read->arguments[7].text, "a b\tc");
  EXPECT_EQ(read->element->index, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(std::isinf(read->element->expected));
  EXPECT_TRUE(read->complete());
  EXPECT_EQ(read->arguments_text(),
            "y=f32[2,3]{4,1} x=f32[2,3]{4,1} weight=none eps=1e-06 causal=true style=1 window=-5 "
            "word='a b\tc' sizes=[1,-2,3]");
}

TEST(ReplayFile, is_text_up_to_the_elements) {
  const std::string bytes = to_file(sample());
  const std::string header = bytes.substr(0, bytes.find("\n\n"));
  EXPECT_TRUE(header.starts_with("opmux replay 1\nsha256 "));
  for (const char c : header) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  EXPECT_NE(header.find("\nelement y [1,2] got 1.5 expected inf allowed 3e-07\n"), header.npos);
  EXPECT_NE(header.find("\nx tensor f32[2,3]{4,1} aligned 64 on 1:0 same_as - contents known "),
            header.npos);
}

TEST(ReplayFile, without_elements_is_not_complete) {
  Recording redacted = sample();
  redacted.arguments[1].tensor.bytes.clear();
  const auto read = parse_file(to_file(redacted), "a file");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->complete());
  EXPECT_EQ(read->arguments[1].tensor.sha256, sample().arguments[1].tensor.sha256);
  EXPECT_EQ(to_file(redacted).find("\n\n") + 2, to_file(redacted).size());
}

TEST(ReplayFile, refuses_every_changed_byte_and_every_shorter_file) {
  const std::string bytes = to_file(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] ^= 1;
    EXPECT_NE(problem(other), "") << "byte " << i;
    EXPECT_NE(problem(bytes.substr(0, i)), "") << "only " << i << " bytes";
  }
  EXPECT_NE(problem(bytes + "x"), "");
}

TEST(ReplayFile, names_line_and_version) {
  EXPECT_EQ(
      problem("opmux replay 2\n"),
      "a file:1: invalid replay file: the file has version 'opmux replay 2', this build reads "
      "'opmux replay 1'");
  EXPECT_EQ(problem("rubbish"),
            "a file:1: invalid replay file: the file does not begin with 'opmux replay 1'");
  EXPECT_NE(problem(changed("cause diverged", "cause bored")).find("a file:8: "),
            std::string::npos);
}

TEST(ReplayFile, refuses_what_no_writer_writes) {
  const std::pair<std::string_view, std::string_view> changes[]{
      {"operator rms_norm", "operator Rms"},
      {"implementation rms_norm/acme", "implementation softmax/acme"},
      {"aligned 64", "aligned 63"},
      {"aligned 64", "aligned 8192"},
      {"[2,3]{4,1} aligned 64 on 1:0 same_as x", "[2,-3]{4,1} aligned 64 on 1:0 same_as x"},
      {"f32[2,3]{4,1}", "f32[2,3]{4}"},
      {"f32[2,3]{4,1}", "f33[2,3]{4,1}"},
      {"f32[2,3]{4,1}", "f32[1,1,1,1,1,1,1,1,1]{1,1,1,1,1,1,1,1,1}"},
      {"same_as x", "same_as z"},
      {"same_as x", "same_as eps"},
      {"same_as x", "same_as y"},
      {"contents known", "contents large"},
      {"contents written", "contents known"},
      {"bytes 24", "bytes 25"},
      {"bytes 24", "bytes 20"},
      {"bytes 24", "bytes 18446744073709551615"},
      {"bytes 0", "bytes 4"},
      {"arguments 9", "arguments 8"},
      {"arguments 9", "arguments 25"},
      {"arguments 9", "arguments 0"},
      {"weight none", "x none"},
      {"weight none", "weight none "},
      {"eps floating 1e-06", "eps floating one"},
      {"causal logical true", "causal logical maybe"},
      {"window integer -5", "window integer 99999999999999999999"},
      {"sizes integers [1,-2,3]", "sizes integers [1,-2,3"},
      {"word string a b\\x09c", "word string a b\\x41c"},
      {"got 1.5", "got many"},
      {"threads 3", "threads 3 "},
  };
  EXPECT_EQ(problem(changed("threads 3", "threads 4")), "");
  for (const auto& [from, to] : changes) EXPECT_NE(problem(changed(from, to)), "") << to;
}

TEST(ReplayFile, refuses_a_header_that_does_not_end) {
  const std::string says(kMostHeaderBytes, 'x');
  EXPECT_NE(problem(changed("says ", "says " + says)), "");
  EXPECT_NE(problem(std::string(kMostFileBytes + 1, 'x')).find("larger"), std::string::npos);
}

TEST(ReplayFile, is_read_from_disk) {
  const test::TemporaryFolder folder;
  test::write_file(folder.at("one"), to_file(sample()));
  EXPECT_TRUE(read_file(folder.at("one")));
  EXPECT_EQ(read_file(folder.at("two")).error().reason(), "replay.file");
  EXPECT_EQ(read_file(folder.at("two")).error().code(), Code::not_found);
}

}  // namespace
}  // namespace opmux::replay
