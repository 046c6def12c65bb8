#include <span>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "record/file_text.hpp"
#include "record/recording.hpp"

namespace opmux::record {
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

}  // namespace opmux::record
