#include "runtime/calls/c_arguments.hpp"

#include <bit>
#include <new>

#include <opmux/detail/arguments.hpp>

#include "base/text.hpp"

namespace opmux::runtime {
namespace {

[[gnu::cold, gnu::noinline]] Status::Detail* too_many(const schema::Schema& schema,
                                                      uint32_t count) {
  return Status(Code::invalid_argument, "schema.argument_count",
                base::concat(schema.name, ": takes at most ", schema.args.size(), " arguments, ",
                             count, " were given"))
      .release();
}

[[gnu::cold, gnu::noinline]] Status::Detail* malformed(const schema::Schema& schema, uint32_t i,
                                                       const opmux_arg& arg) {
  return Status(Code::invalid_argument, "c.argument",
                base::concat(schema.name, ": argument ", i + 1, " with tag ", arg.tag,
                             " is malformed: its tag is unknown, or a required pointer is null"))
      .release();
}

bool has_data(const opmux_list& list) { return list.data != nullptr || list.size == 0; }

}  // namespace

bool CArguments::put_tensors(const opmux_list& list, uint32_t i) {
  auto held = std::make_unique<TensorList>();
  const auto* tensors = static_cast<const opmux_tensor* const*>(list.data);
  held->views.reserve(list.size);
  for (uint64_t k = 0; k < list.size; ++k) {
    if (tensors[k] == nullptr) return false;
    held->pointers.push_back(&held->views.emplace_back(*tensors[k]));
  }
  storage_[i].list = {static_cast<const void*>(held->pointers.data()), held->pointers.size()};
  tensor_lists_.push_back(std::move(held));
  return true;
}

bool CArguments::put(const schema::ArgSpec* spec, const opmux_arg& arg, uint32_t i) {
  ArgTag tag = static_cast<ArgTag>(arg.tag);
  switch (arg.tag) {
    case OPMUX_ARG_NONE:
      // The fast path treats an absent tensor as a tensor, so that a call site has the same tags
      // with and without it.
      if (spec != nullptr && spec->is_tensor()) tag = ArgTag::tensor;
      values_[i].tensor = &detail::absent_tensor;
      break;
    case OPMUX_ARG_TENSOR:
      if (arg.value.tensor == nullptr) return false;
      if ((arg.flags & OPMUX_ARG_CONSTANT) != 0 && arg.reserved != 0) {
        values_[i].tensor = std::bit_cast<const TensorView*>(arg.reserved);
        tag = ArgTag::constant;
      } else {
        values_[i].tensor = new (&storage_[i].view) TensorView(*arg.value.tensor);
      }
      break;
    case OPMUX_ARG_I64:
    case OPMUX_ARG_ENUM: values_[i].i64 = arg.value.i64; break;
    // The fast path compares and passes on the words of arguments as they are.
    case OPMUX_ARG_BOOL: values_[i].i64 = arg.value.i64 != 0 ? 1 : 0; break;
    case OPMUX_ARG_F64: values_[i].f64 = arg.value.f64; break;
    case OPMUX_ARG_STR:
    case OPMUX_ARG_I64_LIST:
      if (!has_data(arg.value.list)) return false;
      storage_[i].list = arg.value.list;
      values_[i].list = &storage_[i].list;
      break;
    case OPMUX_ARG_TENSOR_LIST:
      if (!has_data(arg.value.list) || !put_tensors(arg.value.list, i)) return false;
      values_[i].list = &storage_[i].list;
      break;
    default: return false;
  }
  site_.push(tag);
  return true;
}

Status::Detail* CArguments::read(const schema::Schema& schema, const opmux_arg* args,
                                 uint32_t count) noexcept try {
  if (count > OPMUX_MAX_ARGS) return too_many(schema, count);
  if (args == nullptr && count != 0) {
    return Status(Code::invalid_argument, "c.null", "args is null").release();
  }
  for (uint32_t i = 0; i < count; ++i) {
    const schema::ArgSpec* spec = i < schema.args.size() ? &schema.args[i] : nullptr;
    if (!put(spec, args[i], i)) return malformed(schema, i, args[i]);
  }
  return nullptr;
} catch (const std::bad_alloc&) {
  return detail::out_of_memory().release();
}

}  // namespace opmux::runtime
