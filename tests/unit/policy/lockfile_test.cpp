#include <algorithm>

#include <opmux/policy.hpp>

#include "temporary_folder.hpp"

namespace opmux {
namespace {

using testing::HasSubstr;

Lockfile example() {
  return {"0123456789abcdef",
          {{"rms_norm", "dtype(x) == bf16 && H % 16 == 0", "rms_norm/simd.avx512", "b1",
            "1111111111111111"},
           {"rms_norm", "dtype(x) == f32", "rms_norm/reference.scalar", "", "1111111111111111"},
           {"softmax", "always", "softmax/simd.avx2", "b1", "2222222222222222"}}};
}

TEST(Lockfile, is_a_sorted_text_that_reads_back_as_the_same_choices) {
  Lockfile lock = example();
  const std::string text = lock.to_string();
  EXPECT_THAT(text, testing::StartsWith("opmux lockfile 1\npolicy 0123456789abcdef\nlock "));
  EXPECT_THAT(text, HasSubstr("lock rms_norm/simd.avx512 build b1 schema 1111111111111111 when "
                              "dtype(x) == bf16 && H % 16 == 0\n"));
  std::reverse(lock.choices.begin(), lock.choices.end());
  EXPECT_EQ(lock.to_string(), text);
  const Lockfile read = Lockfile::parse(text).value();
  EXPECT_EQ(read.to_string(), text);
  EXPECT_EQ(read.policy_hash, lock.policy_hash);
  EXPECT_THAT(read.choices, testing::UnorderedElementsAreArray(lock.choices));
  EXPECT_EQ(read.digest(), lock.digest());
}

TEST(Lockfile, a_text_that_was_changed_is_refused_with_its_line) {
  const std::string text = example().to_string();
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = other[i] == 'x' ? 'y' : 'x';
    const auto read = Lockfile::parse(other, "a.lock");
    ASSERT_FALSE(read) << "byte " << i;
    EXPECT_THAT(std::string(read.error().message()), testing::StartsWith("a.lock:")) << i;
    EXPECT_FALSE(Lockfile::parse(text.substr(0, i))) << "only " << i << " bytes";
  }
  EXPECT_FALSE(Lockfile::parse(text + "\n"));
}

TEST(Lockfile, a_text_with_two_choices_for_the_same_calls_is_refused) {
  Lockfile lock = example();
  lock.choices.push_back(lock.choices[2]);
  lock.choices.back().implementation = "softmax/simd.avx512";
  const auto read = Lockfile::parse(lock.to_string(), "a.lock");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "lock.text");
  EXPECT_EQ(read.error().message(),
            "a.lock:6:1: an earlier line is for the same calls: 'lock softmax/simd.avx512 build b1 "
            "schema 2222222222222222 when always'");
}

TEST(Lockfile, is_written_as_a_whole_and_read_again) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(example().write(folder.at("opmux.lock")).ok());
  EXPECT_EQ(Lockfile::read(folder.at("opmux.lock")).value().to_string(), example().to_string());
  EXPECT_EQ(Lockfile::read(folder.at("none.lock")).error().reason(), "config.file");
  EXPECT_EQ(example().write(folder.at("no/such/folder")).reason(), "lock.write");
}

TEST(Lockfile, differences_are_reported_by_class) {
  const Lockfile from = example();
  Lockfile to = from;
  to.choices[0].implementation = "rms_norm/onednn.jit";
  to.choices[2].build_id = "b2";
  to.choices[1].when = "dtype(x) == f16";
  const std::vector<ChoiceChange> expected = {
      {"rms_norm", "dtype(x) == bf16 && H % 16 == 0", "rms_norm/simd.avx512", "rms_norm/onednn.jit",
       "different implementation"},
      {"rms_norm", "dtype(x) == f32", "rms_norm/reference.scalar", "",
       "only in the first lockfile"},
      {"softmax", "always", "softmax/simd.avx2", "softmax/simd.avx2", "different build"},
      {"rms_norm", "dtype(x) == f16", "", "rms_norm/reference.scalar",
       "only in the second lockfile"}};
  EXPECT_EQ(differences(from, to), expected);
  EXPECT_TRUE(differences(from, from).empty());
}

}  // namespace
}  // namespace opmux
