#include "plugin/trust/signature.hpp"

#include <algorithm>
#include <vector>

#include "base/crypto.hpp"
#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "plugin/discover/discovery.hpp"
#include "plugin/read/bounded_read.hpp"
#include "plugin/trust/checked_file.hpp"

namespace opmux::plugin {
namespace {

struct Field {
  std::string_view name;
  std::string* value;
  size_t digits;  ///< number of hexadecimal digits; 0: a name or a date
  bool optional = false;
};

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// The error in one value; empty if there is none.
std::string value_problem(const Field& field, std::string_view value) {
  if (field.digits != 0) {
    if (value.size() == field.digits && is_hexadecimal(value)) return {};
    return base::concat("is not ", field.digits, " lower-case hexadecimal digits");
  }
  if (field.name == "expires")
    return base::is_date(value) ? "" : "is not a date such as 2031-12-31";
  const bool named = !value.empty() && value.size() <= 64 && printable_text(value, Lines::one);
  return named ? "" : "is not 1 to 64 bytes of printable text";
}

std::string take_line(std::string_view line, std::vector<Field>& fields) {
  const size_t colon = line.find(": ");
  const std::string_view name = line.substr(0, std::min(colon, line.size()));
  const auto field = std::ranges::find(fields, name, &Field::name);
  if (colon == line.npos || field == fields.end())
    return "a line has no field name that is known here";
  if (!field->value->empty()) return base::concat("'", name, "' occurs twice");
  const std::string_view value = line.substr(colon + 2);
  const std::string problem = value_problem(*field, value);
  if (!problem.empty()) return base::concat("'", name, "' ", problem);
  *field->value = value;
  return {};
}

/// The error in the file; empty if there is none.
std::string read_fields(std::string_view text, std::string_view kind, std::vector<Field> fields) {
  const std::string head = base::concat("opmux-", kind, " 1\n");
  if (!text.starts_with(head)) return base::concat("it does not start with 'opmux-", kind, " 1'");
  text.remove_prefix(head.size());
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == text.npos) return "its last line has no newline";
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    std::string problem = take_line(line, fields);
    if (!problem.empty()) return problem;
  }
  for (const Field& field : fields) {
    if (field.value->empty() && !field.optional)
      return base::concat("'", field.name, "' is missing");
  }
  return {};
}

template <class T>
Result<T> finished(T file, const std::string& problem, std::string_view reason) {
  if (problem.empty()) return file;
  return Status(Code::invalid_argument, std::string(reason), problem);
}

}  // namespace

Result<KeyFile> read_key_file(std::string_view text, std::string_view reason) {
  KeyFile file;
  const std::string problem = read_fields(
      text, "key",
      {{"name", &file.name, 0}, {"key", &file.key, 64}, {"expires", &file.expires, 0, true}});
  return finished(std::move(file), problem, reason);
}

Result<SecretKeyFile> read_secret_key_file(std::string_view text, std::string_view reason) {
  SecretKeyFile file;
  const std::string problem =
      read_fields(text, "secret-key", {{"name", &file.name, 0}, {"seed", &file.seed, 64}});
  return finished(std::move(file), problem, reason);
}

Result<SignatureFile> read_signature_file(std::string_view text, std::string_view reason) {
  SignatureFile file;
  const std::string problem = read_fields(
      text, "signature",
      {{"key", &file.key, 64}, {"sha256", &file.sha256, 64}, {"signature", &file.signature, 128}});
  return finished(std::move(file), problem, reason);
}

std::string text_of(const KeyFile& file) {
  const std::string expires =
      file.expires.empty() ? "" : base::concat("expires: ", file.expires, "\n");
  return base::concat("opmux-key 1\nname: ", file.name, "\nkey: ", file.key, "\n", expires);
}

std::string text_of(const SecretKeyFile& file) {
  return base::concat("opmux-secret-key 1\nname: ", file.name, "\nseed: ", file.seed, "\n");
}

std::string text_of(const SignatureFile& file) {
  return base::concat("opmux-signature 1\nkey: ", file.key, "\nsha256: ", file.sha256,
                      "\nsignature: ", file.signature, "\n");
}

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
