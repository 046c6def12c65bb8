#include "replay/recording_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/crypto.hpp"
#include "base/system/files.hpp"
#include "base/text.hpp"
#include "registry/implementation/implementation_id.hpp"
#include "replay/recording.hpp"
#include "schema/schema.hpp"

namespace opmux::replay {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

bool plain(char c) { return c >= ' ' && c <= '~' && c != '\\'; }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool unescape(std::string_view escaped, std::string& text) {
  text.clear();
  while (!escaped.empty()) {
    if (plain(escaped.front())) {
      text += escaped.front();
      escaped.remove_prefix(1);
      continue;
    }
    if (escaped.size() < 4 || !escaped.starts_with("\\x")) return false;
    const size_t high = kDigits.find(escaped[2]), low = kDigits.find(escaped[3]);
    if (high == kDigits.npos || low == kDigits.npos) return false;
    const char c = static_cast<char>(high << 4 | low);
    if (plain(c)) return false;
    text += c;
    escaped.remove_prefix(4);
  }
  return true;
}

std::string list_text(const std::vector<int64_t>& numbers, char open, char close) {
  return base::concat(open, base::join(numbers, ","), close);
}

bool LineReader::list(char open, char close, size_t most, std::vector<int64_t>& into) {
  into.clear();
  if (!skip({&open, 1})) return false;
  if (skip({&close, 1})) return true;
  for (;;) {
    int64_t value = 0;
    if (into.size() == most || !number(value)) return false;
    into.push_back(value);
    if (skip({&close, 1})) return true;
    if (!skip(",")) return false;
  }
}

namespace {

constexpr size_t kDigestDigits = 64;
constexpr size_t kMostIntegers = 1024;
constexpr int64_t kMostAlignment = 4096;

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool valid_argument_name(std::string_view word) {
  const auto fits = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !word.empty() && word.size() <= 64 && std::ranges::all_of(word, fits);
}

bool take_device(LineReader& line, Device& device) {
  return line.number(device.type) && line.skip(":") && line.number(device.id);
}

template <class Enum>
bool enum_of(std::string_view word, Enum last, Enum& into) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    into = static_cast<Enum>(i);
    if (name_of(into) == word) return true;
  }
  return false;
}

bool whole_size(const RecordedTensor& tensor, size_t bytes) {
  int64_t wanted = 0;
  return !__builtin_mul_overflow(tensor.elements(), tensor.dtype.size_bytes(), &wanted) &&
         static_cast<size_t>(wanted) == bytes;
}

/// False for combinations that the writer never produces, such as a digest without known contents.
bool consistent(const RecordedTensor& tensor, size_t bytes) {
  const bool shaped = tensor.shape.size() == tensor.strides.size() && tensor.dtype.bits != 0 &&
                      std::ranges::all_of(tensor.shape, [](int64_t size) { return size >= 0; });
  const bool aligned = tensor.alignment > 0 && tensor.alignment <= kMostAlignment &&
                       (tensor.alignment & (tensor.alignment - 1)) == 0;
  if (!shaped || !aligned) return false;
  const bool known = tensor.contents == Contents::known || tensor.contents == Contents::result;
  if (known != is_hex(tensor.sha256, kDigestDigits)) return false;
  return bytes == 0 || (known && whole_size(tensor, bytes));
}

bool read_tensor(LineReader& line, RecordedTensor& tensor, size_t& bytes) {
  std::string_view dtype, same_as, contents, sha256;
  const bool found = line.until("[", dtype) && line.list('[', ']', OPMUX_MAX_RANK, tensor.shape) &&
                     line.list('{', '}', OPMUX_MAX_RANK, tensor.strides) &&
                     line.skip(" aligned ") && line.number(tensor.alignment) && line.skip(" on ") &&
                     take_device(line, tensor.device) && line.skip(" same_as ") &&
                     line.word(same_as) && line.skip(" contents ") && line.word(contents) &&
                     line.skip(" sha256 ") && line.word(sha256) && line.skip(" bytes ") &&
                     line.number(bytes) && line.ended();
  if (!found || !enum_of(contents, Contents::result, tensor.contents)) return false;
  tensor.dtype = parse_dtype(dtype);
  if (same_as != "-") tensor.same_as = same_as;
  if (sha256 != "-") tensor.sha256 = sha256;
  return consistent(tensor, bytes);
}

bool read_logical(LineReader& line, int64_t& into) {
  into = line.skip("true") ? 1 : 0;
  return into == 1 || line.skip("false");
}

/// Reads the value of an argument by its kind. `bytes` is the size of a tensor's data after the
/// header.
bool read_value(LineReader& line, RecordedArgument& argument, size_t& bytes) {
  std::string_view kind;
  if (!line.word(kind)) return false;
  if (kind == "none") return line.ended();
  if (!line.skip(" ")) return false;
  if (kind == "tensor") {
    argument.tag = ArgTag::tensor;
    return read_tensor(line, argument.tensor, bytes);
  }
  if (kind == "string") {
    argument.tag = ArgTag::string;
    return unescape(line.rest(), argument.text);
  }
  bool found = false;
  if (kind == "floating") {
    argument.tag = ArgTag::floating;
    found = line.number(argument.f64);
  } else if (kind == "logical") {
    argument.tag = ArgTag::logical;
    found = read_logical(line, argument.i64);
  } else if (kind == "enumeration" || kind == "integer") {
    argument.tag = kind == "integer" ? ArgTag::integer : ArgTag::enumeration;
    found = line.number(argument.i64);
  } else if (kind == "integers") {
    argument.tag = ArgTag::integer_list;
    found = line.list('[', ']', kMostIntegers, argument.list);
  }
  return found && line.ended();
}

/// Reads the header line by line, then the tensor data that follows it.
class FileReader {
 public:
  FileReader(std::string_view bytes, std::string_view name) : rest_(bytes), name_(name) {}

  Result<Recording> read() {
    if (rest_.size() > kMostFileBytes) return wrong("the file is larger than any replay file");
    if (Status status = read_seal(); !status.ok()) return status;
    if (!read_facts()) return wrong("unexpected or malformed header line");
    if (!read_arguments()) return wrong("malformed argument line");
    if (Status status = read_elements(); !status.ok()) return status;
    return std::move(recording_);
  }

 private:
  Status wrong(std::string_view what) const {
    return {Code::invalid_argument, "replay.file",
            base::concat(name_, ":", line_, ": invalid replay file: ", what)};
  }

  std::string_view next_line() {
    ++line_;
    const size_t end = rest_.substr(0, kMostHeaderBytes).find('\n');
    if (end == rest_.npos) {
      rest_ = {};
      return "\n";  // not a valid line: every parser rejects it
    }
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    header_ += end + 1;
    return header_ > kMostHeaderBytes ? "\n" : line;
  }

  Status read_seal() {
    const std::string_view title = next_line();
    if (title != kTitle) {
      return wrong(title.starts_with("opmux replay ")
                       ? base::concat("the file has version '", title.substr(0, 40),
                                      "', this build reads '", kTitle, "'")
                       : base::concat("the file does not begin with '", kTitle, "'"));
    }
    LineReader line(next_line());
    if (!line.skip("sha256 ") || !is_hex(line.rest(), kDigestDigits)) {
      return wrong("the SHA-256 digest is missing");
    }
    const std::string found = base::sha256_hex(std::as_bytes(std::span(rest_)));
    if (found.empty()) {
      return {Code::unsupported, "replay.file",
              "this library was built without digests, so it cannot check replay files"};
    }
    return line.rest() == found ? Status() : wrong("the SHA-256 digest does not match");
  }

  bool text(std::string_view key, std::string& into) {
    LineReader line(next_line());
    return line.skip(key) && line.skip(" ") && unescape(line.rest(), into);
  }
  bool name(std::string_view key, std::string& into) {
    return text(key, into) && !into.empty() && into.find(' ') == into.npos;
  }
  bool optional_name(std::string_view key, std::string& into) {
    if (!name(key, into)) return false;
    if (into == "-") into.clear();
    return true;
  }
  template <class T>
  bool number(std::string_view key, T& into) {
    LineReader line(next_line());
    return line.skip(key) && line.skip(" ") && line.number(into) && line.ended();
  }

  bool read_facts() {
    Recording& r = recording_;
    std::string cause;
    if (!name("version", r.version) || !name("operator", r.op) ||
        !schema::valid_operator_name(r.op) || !text("schema", r.schema) ||
        !name("implementation", r.implementation) || !fits_operator() ||
        !optional_name("build", r.build_id) || !name("cause", cause) ||
        !enum_of(cause, Cause::dumped, r.cause) || !name("reason", r.reason) ||
        !text("says", r.says)) {
      return false;
    }
    return read_element() && text("class", r.call_class) &&
           optional_name("policy", r.policy_hash) && optional_name("cpu", r.cpu) &&
           number("ambient", r.ambient) && number("threads", r.max_threads);
  }

  bool fits_operator() const {
    const auto id = registry::parse_implementation_id(recording_.implementation);
    return id && id->op == recording_.op;
  }

  /// Reads the optional line "element".
  bool read_element() {
    if (!rest_.starts_with("element ")) return true;
    LineReader line(next_line());
    RecordedElement element;
    std::string_view argument;
    const bool found = line.skip("element ") && line.word(argument) && line.skip(" ") &&
                       line.list('[', ']', OPMUX_MAX_RANK, element.index) && line.skip(" got ") &&
                       line.number(element.got) && line.skip(" expected ") &&
                       line.number(element.expected) && line.skip(" allowed ") &&
                       line.number(element.allowed) && line.ended();
    element.argument = argument;
    recording_.element = std::move(element);
    return found && valid_argument_name(argument);
  }

  bool read_arguments() {
    size_t count = 0;
    if (!number("arguments", count) || count == 0 || count > OPMUX_MAX_ARGS) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!read_argument()) return false;
    }
    return same_as_known() && next_line().empty();
  }

  bool read_argument() {
    LineReader line(next_line());
    std::string_view word;
    if (!line.until(" ", word) || !line.skip(" ") || recording_.find(word) != nullptr) return false;
    if (!valid_argument_name(word)) return false;
    RecordedArgument& argument = recording_.arguments.emplace_back();
    argument.name = word;
    return read_value(line, argument, sizes_.emplace_back());
  }

  bool same_as_known() const {
    return std::ranges::all_of(recording_.arguments, [this](const RecordedArgument& argument) {
      const std::string& other = argument.tensor.same_as;
      if (other.empty()) return true;
      const RecordedArgument* found = recording_.find(other);
      return found != nullptr && found->tag == ArgTag::tensor && found->name != argument.name &&
             found->tensor.same_as.empty();
    });
  }

  /// Copies the tensor data. Checks the sum of all sizes first.
  Status read_elements() {
    size_t wanted = 0;
    for (const size_t size : sizes_) {
      if (size > rest_.size()) return wrong("tensor data is missing at the end of the file");
      wanted += size;
    }
    if (wanted != rest_.size())
      return wrong("the tensor data does not have the size in the header");
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const auto bytes = std::as_bytes(std::span(rest_.substr(0, sizes_[i])));
      recording_.arguments[i].tensor.bytes.assign(bytes.begin(), bytes.end());
      rest_.remove_prefix(sizes_[i]);
    }
    return {};
  }

  std::string_view rest_, name_;
  size_t line_ = 0, header_ = 0;
  Recording recording_;
  std::vector<size_t> sizes_;  ///< size in bytes of each argument's data after the header
};

}  // namespace

Result<Recording> parse_file(std::string_view bytes, std::string_view name) {
  return FileReader(bytes, name).read();
}

Result<Recording> read_file(const std::string& path) {
  const auto bytes = base::read_whole(path, kMostFileBytes);
  if (!bytes) return Status(Code::not_found, "replay.file", std::string(bytes.error().message()));
  return parse_file(*bytes, path);
}

namespace {

using base::concat;

std::string word_or_dash(std::string_view word) { return word.empty() ? "-" : std::string(word); }

std::string element_line(const RecordedElement& element) {
  return concat("element ", element.argument, " ", list_text(element.index, '[', ']'), " got ",
                base::number_text(element.got), " expected ", base::number_text(element.expected),
                " allowed ", base::number_text(element.allowed), "\n");
}

std::string tensor_words(const RecordedTensor& tensor) {
  return concat("tensor ", opmux::name_of(tensor.dtype), list_text(tensor.shape, '[', ']'),
                list_text(tensor.strides, '{', '}'), " aligned ", tensor.alignment, " on ",
                tensor.device.type, ":", tensor.device.id, " same_as ",
                word_or_dash(tensor.same_as), " contents ", name_of(tensor.contents), " sha256 ",
                word_or_dash(tensor.sha256), " bytes ", tensor.bytes.size());
}

std::string value_words(const RecordedArgument& argument) {
  switch (argument.tag) {
    case ArgTag::tensor: return tensor_words(argument.tensor);
    case ArgTag::floating: return "floating " + base::number_text(argument.f64);
    case ArgTag::logical: return concat("logical ", argument.i64 != 0 ? "true" : "false");
    case ArgTag::enumeration: return concat("enumeration ", argument.i64);
    case ArgTag::integer: return concat("integer ", argument.i64);
    case ArgTag::string: return concat("string ", escaped(argument.text));
    case ArgTag::integer_list: return concat("integers ", list_text(argument.list, '[', ']'));
    default: return "none";
  }
}

std::string header_of(const Recording& recording) {
  std::string text =
      concat("version ", recording.version, "\noperator ", recording.op, "\nschema ",
             escaped(recording.schema), "\nimplementation ", recording.implementation, "\nbuild ",
             word_or_dash(escaped(recording.build_id)), "\ncause ", name_of(recording.cause),
             "\nreason ", recording.reason, "\nsays ", escaped(recording.says), "\n");
  if (recording.element) text += element_line(*recording.element);
  text += concat("class ", escaped(recording.call_class), "\npolicy ",
                 word_or_dash(recording.policy_hash), "\ncpu ", word_or_dash(recording.cpu),
                 "\nambient ", recording.ambient, "\nthreads ", recording.max_threads,
                 "\narguments ", recording.arguments.size(), "\n");
  for (const RecordedArgument& argument : recording.arguments) {
    text += concat(argument.name, " ", value_words(argument), "\n");
  }
  return text + "\n";
}

}  // namespace

std::string to_file(const Recording& recording) {
  std::string body = header_of(recording);
  for (const RecordedArgument& argument : recording.arguments) {
    const std::vector<std::byte>& bytes = argument.tensor.bytes;
    if (argument.tag == ArgTag::tensor && !bytes.empty()) {
      body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return concat(kTitle, "\nsha256 ", base::sha256_hex(std::as_bytes(std::span(body))), "\n", body);
}

namespace {

/// Counts the replay files in a folder; stops at `enough`.
size_t count_files(const std::string& folder, size_t enough) {
  std::vector<std::string> names;
  base::read_names(folder, names);
  const auto found =
      std::ranges::count_if(names, [](const std::string& name) { return name.ends_with(kSuffix); });
  return std::min(static_cast<size_t>(found), enough);
}

}  // namespace

std::string RecordFolder::path_of(std::string_view name) const {
  return base::concat(path_, "/", name, kSuffix);
}

Status RecordFolder::write(std::string_view name, std::string_view bytes) const {
  if (const Status made = base::make_private_folder(path_); !made.ok()) {
    return {Code::unavailable, "record.folder", std::string(made.message())};
  }
  const std::string path = path_of(name);
  if (::access(path.c_str(), F_OK) == 0) {
    return {Code::already_exists, "record.known", path + " already exists"};
  }
  if (count_files(path_, most_files_) >= most_files_) {
    return {Code::resource, "record.full",
            base::concat(path_, " has ", most_files_, " replay files, which is the limit")};
  }
  if (base::replace_file(path, bytes, 0600)) return {};
  return {Code::unavailable, "record.write",
          base::concat("cannot write ", path, ": ", std::generic_category().message(errno))};
}

}  // namespace opmux::replay
