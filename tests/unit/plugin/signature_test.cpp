#include "plugin/trust/signature.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crypto.hpp"
#include "plugin/open/loader.hpp"
#include "plugin/trust/checked_file.hpp"
#include "private_folder.hpp"

namespace opmux::plugin {
namespace {

using testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A plugin, a keyring with one key, and the secret key.
class Signed : public testing::Test {
 protected:
  Signed() {
    path_ = folder_.write("good.so", contents(OPMUX_TEST_ELF "/plain.so"));
    std::filesystem::create_directory(folder_.at("keys"));
    options_.trust = Trust::signed_only;
    options_.keyring = folder_.at("keys");
    key_ = add_key("acme", "");
  }

  /// Adds a new public key to the keyring; returns the secret key.
  SecretKeyFile add_key(const std::string& name, const std::string& expires) {
    const auto key = base::make_signing_key().value();
    folder_.write("keys/" + name + ".pub", text_of(KeyFile{name, key.public_key, expires}));
    return {name, key.seed};
  }
  void sign(const SecretKeyFile& key) {
    const std::string digest = check_file(path_, {}).value().digest;
    folder_.write("good.so.sig", text_of(make_signature(key, digest).value()));
  }
  Result<CheckedFile> check() {
    TrustSettings settings = trust_settings(options_);
    settings.day = "2027-06-15";
    return check_file(path_, settings);
  }
  std::string reason() { return std::string(check().error().reason()); }
  /// The loader's report; the plugin must not have run any code.
  PluginReport load() {
    registry::Registry registry;
    return Loader(registry, trust_settings(options_)).load(path_);
  }

  PrivateFolder folder_;
  std::string path_;
  PluginOptions options_;
  SecretKeyFile key_;
};

TEST_F(Signed, a_plugin_signed_by_a_key_of_the_keyring_is_taken) {
  sign(key_);
  const auto file = check();
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->signer, "acme");
}

TEST_F(Signed, an_unsigned_plugin_is_refused) {
  EXPECT_EQ(reason(), "trust.unsigned");
  const PluginReport report = load();
  EXPECT_EQ(report.reason, "trust.unsigned");
  EXPECT_EQ(report.name, "") << "its query function was not called";
}

TEST_F(Signed, a_tampered_plugin_is_refused) {
  sign(key_);
  std::ofstream(path_, std::ios::app | std::ios::binary) << '\0';
  EXPECT_EQ(reason(), "trust.tampered");
  EXPECT_EQ(load().reason, "trust.tampered");
}

TEST_F(Signed, a_tampered_signature_is_refused) {
  sign(key_);
  std::string text = contents(path_ + ".sig");
  char& last = text[text.size() - 2];
  last = last == '0' ? '1' : '0';
  folder_.write("good.so.sig", text);
  EXPECT_EQ(reason(), "trust.tampered");
  // The digest of another file with a valid signature.
  const std::string other(64, 'a');
  folder_.write("good.so.sig", text_of(make_signature(key_, other).value()));
  EXPECT_EQ(reason(), "trust.tampered");
}

TEST_F(Signed, a_plugin_signed_by_another_key_is_refused) {
  sign({"acme", base::make_signing_key()->seed});
  EXPECT_EQ(reason(), "trust.key");
  EXPECT_EQ(load().reason, "trust.key");
}

TEST_F(Signed, a_key_is_good_until_the_end_of_its_last_day) {
  sign(add_key("short", "2027-06-15"));
  EXPECT_EQ(reason(), "");
  sign(add_key("short", "2027-06-14"));
  EXPECT_EQ(reason(), "trust.key_expired");
  EXPECT_THAT(check().error().message(), HasSubstr("'short'"));
  sign(add_key("short", "2001-01-01"));
  EXPECT_EQ(load().reason, "trust.key_expired");
}

TEST_F(Signed, a_signature_that_cannot_be_read_is_refused) {
  for (const char* text : {"", "opmux-signature 2\n", "opmux-signature 1\nkey: 00\n"}) {
    folder_.write("good.so.sig", text);
    EXPECT_EQ(reason(), "trust.signature") << text;
  }
  folder_.write("good.so.sig", std::string(kLargestKeyFile + 1, 'x'));
  EXPECT_EQ(reason(), "trust.signature");
}

TEST_F(Signed, a_damaged_or_writable_keyring_is_refused) {
  sign(key_);
  folder_.write("keys/broken.pub", "opmux-key 1\nname: x\n");
  EXPECT_EQ(reason(), "trust.keyring");
  std::filesystem::remove(folder_.at("keys/broken.pub"));
  EXPECT_EQ(reason(), "");
  chmod(folder_.at("keys").c_str(), 0777);
  EXPECT_EQ(reason(), "trust.keyring");
  chmod(folder_.at("keys").c_str(), 0755);
  chmod(folder_.at("keys/acme.pub").c_str(), 0666);
  EXPECT_EQ(reason(), "trust.keyring");
  options_.keyring = folder_.at("none");
  EXPECT_EQ(reason(), "trust.keyring");
  options_.keyring = "";
  EXPECT_EQ(reason(), "trust.keyring");
}

TEST(KeyFiles, say_what_is_wrong_with_them) {
  const std::string digits(64, 'a');
  const auto problem = [](const std::string& text) {
    return std::string(read_key_file(text, "trust.keyring").error().message());
  };
  const std::string good = "opmux-key 1\n# ours\nname: acme\nkey: " + digits + "\n";
  EXPECT_EQ(problem(good), "");
  EXPECT_EQ(problem(good + "expires: 2031-12-31\n"), "");
  EXPECT_THAT(problem(good + "expires: 2031-02-30\n"), HasSubstr("not a date"));
  EXPECT_THAT(problem(good + "name: again\n"), HasSubstr("twice"));
  EXPECT_THAT(problem(good + "owner: x\n"), HasSubstr("no field name"));
  EXPECT_THAT(problem(good + "# no end"), HasSubstr("no newline"));
  EXPECT_THAT(problem("opmux-key 1\nname: acme\n"), HasSubstr("'key' is missing"));
  EXPECT_THAT(problem("opmux-key 1\nname: acme\nkey: xyz\n"),
              HasSubstr("64 lower-case hexadecimal"));
}

}  // namespace
}  // namespace opmux::plugin
