#include "plugin/signature.hpp"

#include <algorithm>
#include <vector>

#include "base/ed25519.hpp"
#include "base/text.hpp"
#include "plugin/checked_file.hpp"
#include "plugin/discovery.hpp"

namespace opmux::plugin {
namespace {

Status no_trust(std::string_view reason, std::string message) {
  return {Code::invalid_argument, base::concat("trust.", reason), std::move(message)};
}

Status unsupported() {
  return no_trust("unsupported", "this opmux was built without signatures (OPMUX_SIGNATURES)");
}

Result<std::string> read_small(const OpenedPath& file) {
  const Result<FileIdentity> identity = identity_of(file.descriptor.get());
  if (!identity) return identity.error();
  if (identity->size > kLargestKeyFile) {
    return Status(Code::invalid_argument, "trust.size",
                  base::concat(file.real_path, " is too large for a key or signature file"));
  }
  const Result<FileBytes> bytes = read_bytes(file.descriptor.get(), identity->size);
  if (!bytes) return bytes.error();
  return std::string(reinterpret_cast<const char*>(bytes->data.get()), bytes->size);
}

Result<KeyFile> read_key(const std::string& path, const PathRules& rules) {
  const auto refuse = [&](std::string_view why) {
    return no_trust("keyring", base::concat("the key ", path, " cannot be used: ", why));
  };
  const Result<OpenedPath> file = open_file(path, rules);
  if (!file) return refuse(file.error().message());
  if (!file->problems.empty()) return refuse(file->problems.front().message());
  const Result<std::string> text = read_small(*file);
  if (!text) return refuse(text.error().message());
  Result<KeyFile> key = read_key_file(*text, "trust.keyring");
  if (!key) return refuse(key.error().message());
  return key;
}

/// All keys of the folder. A malformed key makes the whole keyring unusable, because it is unknown
/// which plugins it was meant to admit.
Result<std::vector<KeyFile>> read_keyring(const std::string& folder, const PathRules& rules) {
  const auto refuse = [&](std::string_view why) {
    return no_trust("keyring", base::concat("the keyring '", folder, "' cannot be used: ", why));
  };
  const Result<OpenedPath> opened = open_folder(folder, rules);
  if (!opened) return refuse(opened.error().message());
  if (!opened->problems.empty()) return refuse(opened->problems.front().message());
  const auto paths = list_files(opened->real_path, ".pub");
  if (!paths) return refuse(paths.error().message());
  std::vector<KeyFile> keys;
  for (const std::string& path : *paths) {
    Result<KeyFile> key = read_key(path, rules);
    if (!key) return key.error();
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return refuse("it contains no *.pub file");
  return keys;
}

Result<SignatureFile> read_signature(const std::string& path, const PathRules& rules) {
  // The permissions of the signature file do not matter, because its contents are verified.
  const Result<OpenedPath> file = open_file(path, rules);
  if (!file) {
    return no_trust("unsigned", base::concat("there is no signature: ", file.error().message()));
  }
  const Result<std::string> text = read_small(*file);
  if (!text) return no_trust("signature", std::string(text.error().message()));
  Result<SignatureFile> signature = read_signature_file(*text, "trust.signature");
  if (signature) return signature;
  return no_trust("signature", base::concat("the signature ", path,
                                            " cannot be read: ", signature.error().message()));
}

}  // namespace

std::string signed_text(std::string_view sha256) {
  return base::concat("opmux-signature 1\nsha256: ", sha256, "\n");
}

Result<SignatureFile> make_signature(const SecretKeyFile& key, std::string_view sha256) {
  if (!base::has_signatures()) return unsupported();
  const auto signing = base::signing_key(key.seed);
  const auto signature = signing ? base::sign(*signing, signed_text(sha256)) : std::nullopt;
  if (!signature) return no_trust("key", "the secret key is malformed");
  return SignatureFile{signing->public_key, std::string(sha256), *signature};
}

Result<std::string> find_signer(const std::string& path, std::string_view sha256,
                                const std::string& keyring, std::string_view day,
                                const PathRules& rules) {
  if (!base::has_signatures()) return unsupported();
  const Result<SignatureFile> signature = read_signature(path + ".sig", rules);
  if (!signature) return signature.error();
  const Result<std::vector<KeyFile>> keys = read_keyring(keyring, rules);
  if (!keys) return keys.error();
  const auto key = std::ranges::find(*keys, signature->key, &KeyFile::key);
  if (key == keys->end()) {
    return no_trust("key",
                    base::concat(path, " was signed with key ", signature->key,
                                 ", which is not among the ", keys->size(), " of ", keyring));
  }
  const bool holds = base::signature_holds(key->key, signed_text(sha256), signature->signature);
  if (signature->sha256 != sha256 || !holds) {
    return no_trust("tampered",
                    base::concat("the signature of ", path, " does not match its contents: ",
                                 "the file or the signature was changed"));
  }
  if (!key->expires.empty() && key->expires < day) {
    return no_trust("key_expired", base::concat("the key '", key->name, "' that signed ", path,
                                                " expired after ", key->expires));
  }
  return key->name;
}

}  // namespace opmux::plugin
