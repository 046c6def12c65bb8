#include "schema/facts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace opmux::schema {
namespace {

bool about_tensor(FactKind kind) {
  switch (kind) {
    case FactKind::dtype:
    case FactKind::rank:
    case FactKind::contiguous:
    case FactKind::inner_contiguous:
    case FactKind::alignment:
    case FactKind::layout:
    case FactKind::device: return true;
    default: return false;
  }
}

std::string_view word_of(FactKind kind) {
  switch (kind) {
    case FactKind::dtype: return "dtype";
    case FactKind::rank: return "rank";
    case FactKind::present: return "has";
    case FactKind::contiguous: return "contiguous";
    case FactKind::inner_contiguous: return "inner_contiguous";
    case FactKind::alignment: return "aligned";
    case FactKind::layout: return "layout";
    case FactKind::device: return "device";
    case FactKind::is_default: return "default";
    default: return "";
  }
}

bool inner_contiguous(const TensorView& tensor) {
  const int last = tensor.rank() - 1;
  return last < 0 || tensor.dim(last) <= 1 || tensor.stride(last) == 1;
}

int64_t scalar_fact(ArgTag tag, ArgValue value) {
  switch (tag) {
    case ArgTag::integer:
    case ArgTag::logical:
    case ArgTag::enumeration: return value.i64;
    case ArgTag::floating: return float_fact(value.f64);
    default: return kAbsent;
  }
}

bool present(const Arguments& arguments, uint8_t index) {
  const ArgTag tag = arguments.tags[index];
  if (tag == ArgTag::tensor) return arguments.values[index].tensor->present();
  return tag != ArgTag::none;
}

}  // namespace

bool means_ambient(const Schema& schema, std::string_view name) {
  const bool number = std::ranges::find(kRankNames, name) != kRankNames.end();
  if (!number && !is_ambient(name)) return false;
  const bool newer = number || name == "inference" || name == "autocast" || name == "instance";
  return !newer || (schema.dim_index(name) < 0 && schema.arg_index(name) < 0);
}

std::optional<Fact> resolve_fact(const Schema& schema, FactKind kind, std::string_view name) {
  if (kind == FactKind::tag) return Fact{kind, 0};
  if (kind == FactKind::ambient) {
    const auto at = std::ranges::find(kAmbientNames, name);
    if (at != kAmbientNames.end()) {
      return Fact{kind, static_cast<uint8_t>(at - kAmbientNames.begin())};
    }
    const auto number = std::ranges::find(kRankNames, name);
    if (number == kRankNames.end()) return std::nullopt;
    return Fact{kind, static_cast<uint8_t>(kFirstRank + (number - kRankNames.begin()))};
  }
  if (kind == FactKind::dim) {
    if (name == "rows" && schema.has_leading()) return Fact{kind, kRowsDim};
    const int dim = schema.dim_index(name);
    if (dim < 0) return std::nullopt;
    return Fact{kind, static_cast<uint8_t>(dim)};
  }
  const int arg = schema.arg_index(name);
  if (arg < 0) return std::nullopt;
  const ArgType type = schema.args[arg].type;
  const bool fits =
      kind == FactKind::present || (about_tensor(kind) && type == ArgType::tensor) ||
      (kind == FactKind::scalar && type >= ArgType::integer && type <= ArgType::enumeration);
  if (!fits) return std::nullopt;
  return Fact{kind, static_cast<uint8_t>(arg)};
}

std::string describe(const Schema& schema, Fact fact) {
  switch (fact.kind) {
    case FactKind::dim: return fact.index == kRowsDim ? "rows" : schema.dims[fact.index];
    case FactKind::scalar: return schema.args[fact.index].name;
    case FactKind::ambient:
      return std::string(is_rank(fact) ? kRankNames[fact.index - kFirstRank]
                                       : kAmbientNames[fact.index]);
    case FactKind::tag: return "tag";
    case FactKind::threads: return "threads";
    default: return std::string(word_of(fact.kind)) + "(" + schema.args[fact.index].name + ")";
  }
}

int64_t value_beside_dims(const Signature& signature, Fact fact) {
  const Arguments& arguments = *signature.arguments;
  switch (fact.kind) {
    case FactKind::present: return present(arguments, fact.index) ? 1 : 0;
    case FactKind::scalar:
      return scalar_fact(arguments.tags[fact.index], arguments.values[fact.index]);
    case FactKind::ambient:
      if (fact.index == kInstanceFact) return arguments.has_instance() ? 1 : 0;
      if (!is_rank(fact)) return signature.ambient >> fact.index & 1;
      return signature.ranks == nullptr ? kAbsent : signature.ranks->value(fact.index - kFirstRank);
    case FactKind::tag: return signature.tag;
    case FactKind::threads: return signature.threads > 0 ? signature.threads : kAbsent;
    case FactKind::is_default: {
      const ArgTag tag = arguments.tags[fact.index];
      return has_default(signature.schema->args[fact.index], tag, arguments.values[fact.index]);
    }
    default: break;
  }
  if (arguments.tags[fact.index] != ArgTag::tensor) return kAbsent;
  return tensor_fact(*arguments.values[fact.index].tensor, fact.kind);
}

bool has_default(const ArgSpec& spec, ArgTag tag, ArgValue value) {
  if (tag == ArgTag::none) return !spec.default_value || spec.default_value->tag == ArgTag::none;
  if (tag == ArgTag::tensor) return !value.tensor->present();
  if (!spec.default_value) return false;
  switch (tag) {
    case ArgTag::integer:
    case ArgTag::logical:
    case ArgTag::enumeration: return value.i64 == spec.default_value->i64;
    case ArgTag::floating: return value.f64 == spec.default_value->f64;
    case ArgTag::string:
      return std::string_view(static_cast<const char*>(value.list->data), value.list->size) ==
             spec.default_value->text;
    case ArgTag::integer_list: {
      const auto* items = static_cast<const int64_t*>(value.list->data);
      return std::equal(items, items + value.list->size, spec.default_value->list.begin(),
                        spec.default_value->list.end());
    }
    default: return false;
  }
}

int64_t tensor_fact(const TensorView& tensor, FactKind kind) {
  if (!tensor.present()) return kAbsent;
  switch (kind) {
    case FactKind::dtype: return tensor.dtype().packed();
    case FactKind::rank: return tensor.rank();
    case FactKind::contiguous: return tensor.contiguous() ? 1 : 0;
    case FactKind::inner_contiguous: return inner_contiguous(tensor) ? 1 : 0;
    case FactKind::alignment: return alignment_of(tensor);
    case FactKind::layout: return layout_of(tensor);
    case FactKind::device: return tensor.device().type | int64_t{tensor.device().id} << 16;
    default: return kAbsent;
  }
}

int64_t layout_of(const TensorView& tensor) {
  std::array<int, OPMUX_MAX_RANK> order{};
  for (int dim = 0; dim < tensor.rank(); ++dim) {
    int place = dim;
    for (; place > 0 && tensor.stride(order[place - 1]) < tensor.stride(dim); --place) {
      order[place] = order[place - 1];
    }
    order[place] = dim;
  }
  uint64_t packed = 0;
  for (int i = 0; i < tensor.rank(); ++i) packed |= static_cast<uint64_t>(order[i]) << (4 * i);
  return static_cast<int64_t>(packed);
}

std::optional<int64_t> parse_layout(std::string_view order) {
  if (order.empty() || order.size() > OPMUX_MAX_RANK) return std::nullopt;
  int64_t packed = 0;
  unsigned seen = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto digit = static_cast<unsigned>(order[i] - '0');
    if (digit >= order.size() || (seen >> digit & 1) != 0) return std::nullopt;
    seen |= 1u << digit;
    packed |= static_cast<int64_t>(digit) << (4 * i);
  }
  return packed;
}

int64_t alignment_of(const TensorView& tensor) {
  // A handle does not reveal the address of its memory, so use the offset within it.
  const uint64_t address = has_handles(tensor.device())
                               ? tensor.c().byte_offset
                               : reinterpret_cast<uintptr_t>(tensor.data());
  return int64_t{1} << std::countr_zero(address | uint64_t{4096});
}

}  // namespace opmux::schema
