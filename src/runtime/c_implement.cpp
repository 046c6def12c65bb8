#include "plugin/backend_reader.hpp"
#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"
#include "runtime/c_policy.hpp"
#include "runtime/registration.hpp"

using opmux::Result;
using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::view_of;

namespace {

Result<opmux::Registration> implement(opmux::runtime::Core& core, const opmux_backend& backend) {
  opmux_backend read{};
  constexpr size_t kLeast = offsetof(opmux_backend, device) + sizeof(void*);
  if (Status bad = opmux::runtime::read_sized(backend, kLeast, "backend", read); !bad.ok())
    return bad;
  std::vector<opmux::registry::Refusal> refused;
  const auto batch = opmux::plugin::read_backend(read, {}, refused);
  if (!batch) return refused.front().why;
  opmux::registry::BatchResult result = core.registry().add(*batch, true);
  if (!result.refused.empty()) return result.refused.front().why;
  return opmux::Registration(
      std::make_unique<opmux::Registration::Held>(core, std::move(result.added)));
}

}  // namespace

int32_t opmux_define(opmux_runtime* runtime, opmux_str schema, uint32_t flags, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime, schema", runtime, schema.data); !bad.ok()) return bad;
    return runtime->cpp.define(view_of(schema),
                               {.data_checked = (flags & OPMUX_DEFINE_DATA_CHECKED) != 0});
  });
}

int32_t opmux_implement(opmux_runtime* runtime, const opmux_backend* backend,
                        opmux_registration** registration, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    Status bad = none_null("runtime, backend, registration", runtime, backend, registration);
    if (!bad.ok()) return bad;
    auto added = implement(runtime->cpp.core(), *backend);
    if (!added) return added.error();
    *registration = new opmux_registration{*std::move(added)};
    return {};
  });
}

int32_t opmux_withdraw(opmux_registration* registration, opmux_error* error) {
  return guarded(error, [&]() -> Status {
    const std::unique_ptr<opmux_registration> held(registration);
    return held == nullptr ? Status() : held->cpp.withdraw();
  });
}

void opmux_registration_keep(opmux_registration* registration) {
  if (registration == nullptr) return;
  registration->cpp.keep();
  delete registration;
}
