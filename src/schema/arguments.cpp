#include "schema/arguments.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "schema/argument_errors.hpp"

namespace opmux::schema {
namespace {

using base::concat;

const TensorView kAbsentTensor;

std::string_view noun(ArgTag tag) {
  switch (tag) {
    case ArgTag::none: return "nothing";
    case ArgTag::tensor:
    case ArgTag::constant: return "a tensor";
    case ArgTag::integer: return "an int";
    case ArgTag::floating: return "a float";
    case ArgTag::logical: return "a bool";
    case ArgTag::enumeration: return "an enum";
    case ArgTag::string: return "a string";
    case ArgTag::integer_list: return "a list of ints";
    case ArgTag::tensor_list: return "a list of tensors";
  }
  return "something unknown";
}

[[gnu::cold, gnu::noinline]] Status too_many(const Schema& schema, uint32_t given) {
  return fail(schema, "schema.argument_count",
              concat("takes at most ", schema.args.size(), " arguments, ", given, " were given"));
}

[[gnu::cold, gnu::noinline]] Status wrong_type(const Schema& schema, size_t index, ArgTag given) {
  return fail(schema, "schema.argument_type",
              concat("argument ", index + 1, " '", schema.argument_text(index), "' wants ",
                     noun(tag_of(schema.args[index].type)), ", ", noun(given), " was given"));
}

[[gnu::cold, gnu::noinline]] Status unknown_word(const Schema& schema, const ArgSpec& arg,
                                                 std::string_view word) {
  return fail(schema, "schema.enum_word",
              concat("'", arg.name, "' is one of ", base::join(arg.words, ", "), ", not '", word,
                     "'", base::suggestion(word, arg.words)));
}

[[gnu::cold, gnu::noinline]] Status unknown_position(const Schema& schema, const ArgSpec& arg,
                                                     int64_t position) {
  return fail(schema, "schema.enum_word",
              concat("'", arg.name, "' has ", arg.words.size(), " words, position ", position,
                     " was given"));
}

void put_absent(const ArgSpec& arg, ArgTag& tag, ArgValue& value) {
  tag = ArgTag::none;
  if (arg.is_tensor()) {
    value.tensor = &kAbsentTensor;
  } else {
    value.i64 = 0;
  }
}

void put_default(const ArgSpec& arg, ArgTag& tag, ArgValue& value) {
  const DefaultValue& given = *arg.default_value;
  tag = given.tag;
  switch (given.tag) {
    case ArgTag::floating: value.f64 = given.f64; break;
    case ArgTag::string:
    case ArgTag::integer_list: value.list = &given.span; break;
    default: value.i64 = given.i64;
  }
}

Status put_enum(const Schema& schema, const ArgSpec& arg, ArgTag& tag, ArgValue& value) {
  if (tag != ArgTag::string) {
    tag = ArgTag::enumeration;
    const bool known = value.i64 >= 0 && value.i64 < static_cast<int64_t>(arg.words.size());
    return known ? Status() : unknown_position(schema, arg, value.i64);
  }
  const std::string_view word(static_cast<const char*>(value.list->data), value.list->size);
  const auto found = std::find(arg.words.begin(), arg.words.end(), word);
  if (found == arg.words.end()) return unknown_word(schema, arg, word);
  tag = ArgTag::enumeration;
  value.i64 = found - arg.words.begin();
  return {};
}

/// Handles an argument whose tag is not that of its schema type: converts it if possible.
Status convert(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value) {
  const ArgSpec& arg = schema.args[index];
  if (arg.type == ArgType::floating && tag == ArgTag::integer) {
    tag = ArgTag::floating;
    value.f64 = static_cast<double>(value.i64);
    return {};
  }
  if (arg.type == ArgType::enumeration && (tag == ArgTag::string || tag == ArgTag::integer)) {
    return put_enum(schema, arg, tag, value);
  }
  // opmux::none is passed as an absent tensor, whatever the argument's type.
  const bool absent = tag == ArgTag::tensor && (!value.tensor || !value.tensor->present());
  if (tag != ArgTag::none && !absent) return wrong_type(schema, index, tag);
  if (arg.optional || arg.is_tensor()) {
    put_absent(arg, tag, value);
  } else if (arg.default_value) {
    put_default(arg, tag, value);
  } else {
    return fail_missing(schema, index);
  }
  return {};
}

Status put_given(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value) {
  const ArgSpec& arg = schema.args[index];
  // opmux::none in place of a scalar is passed as an absent tensor.
  if (tag == ArgTag::tensor && !arg.is_tensor() && !value.tensor->present()) tag = ArgTag::none;
  if (tag != tag_of(arg.type)) return convert(schema, index, tag, value);
  if (tag == ArgTag::tensor) {
    if (value.tensor == nullptr || !value.tensor->present()) put_absent(arg, tag, value);
  } else if (tag == ArgTag::logical) {
    value.i64 = value.i64 != 0 ? 1 : 0;
  } else if (tag == ArgTag::enumeration) {
    return put_enum(schema, arg, tag, value);
  }
  return {};
}

Status put_left_out(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value) {
  const ArgSpec& arg = schema.args[index];
  if (arg.default_value) {
    put_default(arg, tag, value);
  } else if (arg.optional) {
    put_absent(arg, tag, value);
  } else {
    return fail_missing(schema, index);
  }
  return {};
}

}  // namespace

ArgTag tag_of(ArgType type) {
  switch (type) {
    case ArgType::tensor: return ArgTag::tensor;
    case ArgType::tensor_list: return ArgTag::tensor_list;
    case ArgType::integer: return ArgTag::integer;
    case ArgType::floating: return ArgTag::floating;
    case ArgType::boolean: return ArgTag::logical;
    case ArgType::enumeration: return ArgTag::enumeration;
    case ArgType::string: return ArgTag::string;
    case ArgType::int_list: return ArgTag::integer_list;
  }
  return ArgTag::none;
}

bool convert_given(const Schema& schema, const CallSite& site, const ArgValue* values,
                   CallSite& exact, ArgValue* converted) {
  const uint32_t count = site.count();
  if (count > schema.args.size()) return false;
  bool any = false;
  for (uint32_t i = 0; i < count; ++i) {
    const ArgSpec& arg = schema.args[i];
    ArgTag tag = site.tag(i);
    if (arg.is_tensor() || tag == tag_of(arg.type) || tag == ArgTag::none) continue;
    // The position of a word in an enum is passed as an int, in the same bytes.
    if (arg.type == ArgType::enumeration && tag == ArgTag::integer) continue;
    if (!any) {
      any = true;
      exact = site;
      std::copy_n(values, count + (site.has_instance() ? 1 : 0), converted);
    }
    if (!put_given(schema, i, tag, converted[i]).ok()) return false;
    exact.set_tag(i, tag);
  }
  return any;
}

Status normalise(const Schema& schema, const CallSite& site, const ArgValue* values,
                 Arguments& out) {
  const size_t count = schema.args.size();
  if (site.count() > count) return too_many(schema, site.count());
  out.count = static_cast<uint32_t>(count);
  out.constants = 0;
  for (size_t i = 0; i < count; ++i) {
    Status status;
    if (i < site.count()) {
      out.tags[i] = site.tag(static_cast<uint32_t>(i));
      out.values[i] = values[i];
      if (out.tags[i] == ArgTag::constant) {
        out.tags[i] = ArgTag::tensor;
        out.constants |= uint32_t{1} << i;
      }
      status = put_given(schema, i, out.tags[i], out.values[i]);
    } else {
      status = put_left_out(schema, i, out.tags[i], out.values[i]);
    }
    if (!status.ok()) return status;
  }
  if (site.has_instance()) {
    out.values[count] = values[site.count()];
    out.constants |= uint32_t{1} << count;
  }
  return {};
}

Result<size_t> find_argument(const Schema& schema, std::string_view name) {
  if (const int at = schema.arg_index(name); at >= 0) return static_cast<size_t>(at);
  std::vector<std::string> names;
  for (const ArgSpec& arg : schema.args) names.push_back(arg.name);
  return Status(
      Code::not_found, "schema.unknown_argument",
      concat(schema.name, " has no argument '", name, "'", base::suggestion(name, names)));
}

Status normalise_one(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value) {
  return put_given(schema, index, tag, value);
}

Status fill_in_one(const Schema& schema, size_t index, ArgTag& tag, ArgValue& value) {
  return put_left_out(schema, index, tag, value);
}

namespace {

using base::concat;
__extension__ typedef __int128 Wide;

/// Larger than every address, and small enough that sums and products of it fit in a Wide.
constexpr Wide kFar = Wide{1} << 90;

struct Range {
  Wide begin;
  Wide end;
};

/// Byte range from the lowest to the highest element, relative to address 0 or to the start of a
/// handle's memory. Negative strides extend it below the first element.
Range range_of(const TensorView& tensor) {
  Wide lowest = 0, highest = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    const Wide reach = std::clamp(Wide{tensor.stride(i)} * (tensor.dim(i) - 1), -kFar, kFar);
    (reach < 0 ? lowest : highest) += reach;
  }
  const Wide size = tensor.dtype().size_bytes();
  const Wide first = has_handles(tensor.device())
                         ? Wide{tensor.c().byte_offset}
                         : static_cast<Wide>(reinterpret_cast<uintptr_t>(tensor.data()));
  return {first + lowest * size, first + (highest + 1) * size};
}

bool identical(const TensorView& a, const TensorView& b) {
  return a.same_start(b) && a.dtype() == b.dtype() && a.rank() == b.rank() &&
         std::equal(a.shape_words(), a.shape_words() + a.rank(), b.shape_words()) &&
         std::equal(a.stride_words(), a.stride_words() + a.rank(), b.stride_words());
}

struct Placed {
  int arg;
  const TensorView* tensor;
};

std::vector<Placed> tensors_of(const Arguments& arguments) {
  std::vector<Placed> all;
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const int arg = static_cast<int>(i);
    if (arguments.tags[i] == ArgTag::tensor) all.push_back({arg, arguments.values[i].tensor});
    if (arguments.tags[i] != ArgTag::tensor_list) continue;
    const opmux_list& list = *arguments.values[i].list;
    const auto* tensors = static_cast<const TensorView* const*>(list.data);
    for (uint64_t k = 0; k < list.size; ++k) all.push_back({arg, tensors[k]});
  }
  return all;
}

bool may_alias(const Schema& schema, const Placed& a, const Placed& b) {
  const bool declared =
      schema.args[a.arg].alias_of == b.arg || schema.args[b.arg].alias_of == a.arg;
  return declared && identical(*a.tensor, *b.tensor);
}

Status fail_overlap(const Schema& schema, const Placed& written, const Placed& other) {
  const std::string& output = schema.args[written.arg].name;
  const std::string& name = schema.args[other.arg].name;
  const bool declared = schema.args[written.arg].alias_of == other.arg;
  return {Code::invalid_argument, "schema.overlap",
          concat(schema.name, ": '", output, "' is written and overlaps '", name, "'",
                 declared ? "; only exactly the same memory, shape and strides are allowed" : "")};
}

}  // namespace

bool overlap(const TensorView& a, const TensorView& b) {
  if (!a.present() || !b.present() || a.device() != b.device()) return false;
  if (a.elements() == 0 || b.elements() == 0) return false;
  if (lacks_data(a) || lacks_data(b)) return false;  // It may be anywhere.
  // Different handles may belong to one allocation, but only the driver knows, so they count as
  // disjoint.
  if (has_handles(a.device()) && a.c().data != b.c().data) return false;
  const Range first = range_of(a), second = range_of(b);
  return first.begin < second.end && second.begin < first.end;
}

Status check_data(const Schema& schema, const Arguments& arguments) {
  for (uint32_t i = 0; i < arguments.count; ++i) {
    if (arguments.tags[i] == ArgTag::tensor) {
      const TensorView& tensor = *arguments.values[i].tensor;
      if (lacks_data(tensor)) [[unlikely]]
        return fail_data(schema, i, tensor);
    } else if (arguments.tags[i] == ArgTag::tensor_list) {
      const opmux_list& list = *arguments.values[i].list;
      const auto* tensors = static_cast<const TensorView* const*>(list.data);
      for (uint64_t k = 0; k < list.size; ++k) {
        if (lacks_data(*tensors[k])) return fail_data(schema, i, *tensors[k]);
      }
    }
  }
  return {};
}

Status check_overlap(const Schema& schema, const Arguments& arguments) {
  const std::vector<Placed> tensors = tensors_of(arguments);
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = i + 1; j < tensors.size(); ++j) {
      const Placed &a = tensors[i], &b = tensors[j];
      const bool a_written = schema.args[a.arg].written();
      if (!a_written && !schema.args[b.arg].written()) continue;
      if (!overlap(*a.tensor, *b.tensor) || may_alias(schema, a, b)) continue;
      return a_written ? fail_overlap(schema, a, b) : fail_overlap(schema, b, a);
    }
  }
  return {};
}

}  // namespace opmux::schema
