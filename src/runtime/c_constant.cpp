
#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"

using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;

int32_t opmux_constant_create(opmux_runtime* runtime, const opmux_tensor* tensor,
                              opmux_constant** constant, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, tensor, constant", runtime, tensor, constant); !bad.ok()) {
      return bad;
    }
    auto made = runtime->cpp.constant(opmux::TensorView(*tensor));
    if (!made) return made.error();
    *constant = new opmux_constant{*std::move(made)};
    return {};
  });
}

void opmux_constant_destroy(opmux_constant* constant) { delete constant; }

int32_t opmux_constant_changed(opmux_constant* constant, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("constant", constant); !bad.ok()) return bad;
    constant->cpp.changed();
    return {};
  });
}

int32_t opmux_constant_packed_bytes(const opmux_constant* constant, uint64_t* bytes,
                                    opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("constant, bytes", constant, bytes); !bad.ok()) return bad;
    *bytes = constant->cpp.packed_bytes();
    return {};
  });
}

opmux_arg opmux_arg_constant(const opmux_constant* constant) {
  return constant == nullptr ? opmux_arg_none() : constant->cpp.argument();
}
