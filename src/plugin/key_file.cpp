#include "plugin/key_file.hpp"

#include <algorithm>
#include <vector>

#include "base/date.hpp"
#include "base/text.hpp"
#include "plugin/bounded_read.hpp"

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

}  // namespace opmux::plugin
