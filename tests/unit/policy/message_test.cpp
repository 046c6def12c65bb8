#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "policy/files/policy_reader.hpp"
#include "policy/rules/rule_fields.hpp"
#include "standard_registry.hpp"

namespace opmux::policy {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// The message with names for the lists of keys, so that a new key does not change all messages.
std::string without_keys(std::string message) {
  std::string all, with_effect;
  for_each_rule_field([&](const auto& field) {
    if (!field.in_files) return;
    all += (all.empty() ? "" : ", ") + std::string(field.key);
    if (field.role == Role::about) return;
    with_effect += (with_effect.empty() ? "" : ", ") + std::string(field.key);
  });
  replace_all(message, all, "<keys of a rule>");
  replace_all(message, with_effect, "<keys with an effect>");
  return message;
}

/// Each NAME.yaml of the folder is refused with the message in NAME.txt. If OPMUX_UPDATE is set in
/// the environment, the test writes the messages instead.
TEST(PolicyMessages, each_refused_text_gets_its_message) {
  const bool update = std::getenv("OPMUX_UPDATE") != nullptr;
  int cases = 0;
  const registry::RegistrySnapshot known = test::standard_registry();
  for (const auto& entry : fs::directory_iterator(OPMUX_REFUSED_POLICIES)) {
    if (entry.path().extension() != ".yaml") continue;
    ++cases;
    const auto policy = parse_policy(contents(entry.path()), "policy.yaml", &known);
    ASSERT_FALSE(policy) << entry.path();
    const std::string message = without_keys(std::string(policy.error().reason()) + "\n" +
                                             std::string(policy.error().message()) + "\n");
    const fs::path expected = fs::path(entry.path()).replace_extension(".txt");
    if (update) std::ofstream(expected, std::ios::binary) << message;
    EXPECT_EQ(message, contents(expected)) << entry.path();
  }
  EXPECT_GE(cases, 60);
}

TEST(PolicyMessages, contain_no_escape_sequences) {
  const Status status = parse_policy("opmux: \"\\e[31m\"\n", "a\x1b[31mb.yaml").error();
  EXPECT_EQ(status.reason(), "policy.version");
  EXPECT_EQ(status.message().find('\x1b'), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("a\\x1b[31mb.yaml:1:8: "), std::string::npos) << status.message();
}

}  // namespace
}  // namespace opmux::policy
