#include "seeded_bugs/seeded.hpp"

#include <algorithm>
#include <span>

OPMUX_C_LINKAGE int32_t opmux_plugin_query_v1_reference(const opmux_host* host, opmux_plugin* out);

namespace opmux::seeded {
namespace {

/// The descriptor of the reference implementation of an operator.
const opmux_impl& right_of(std::string_view op) {
  static const opmux_plugin plugin = [] {
    opmux_host host{};
    host.struct_size = sizeof host;
    host.abi_major = OPMUX_ABI_MAJOR;
    opmux_plugin out{};
    out.struct_size = sizeof out;
    opmux_plugin_query_v1_reference(&host, &out);
    return out;
  }();
  const opmux_backend& backend = plugin.backends[0];
  const std::span<const opmux_impl> impls(backend.impls, backend.impl_count);
  return *std::ranges::find_if(impls, [&](const opmux_impl& impl) {
    return std::string_view(impl.op.data, impl.op.size) == op;
  });
}

}  // namespace

std::vector<Bug> all_bugs() {
  std::vector<Bug> all;
  for (const auto& family :
       {rms_norm_bugs(), norm_bugs(), activation_bugs(), softmax_bugs(), rotary_bugs(),
        product_bugs(), attention_bugs(), cache_bugs(), routing_bugs(), small_float_bugs()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

Seeded::Seeded(const Bug& which) : bug(which), right(&right_of(which.op)) {}

int32_t Seeded::run(void* self, const opmux_call* call) {
  const Seeded& seeded = *static_cast<Seeded*>(self);
  Faulty faulty(*seeded.right, *call);
  return seeded.bug.run(faulty);
}

void implement(Runtime& runtime, std::vector<Seeded>& kernels) {
  for (Seeded& one : kernels) {
    Implementation implementation{.id = one.id(), .vendor = "seeded"};
    implementation.kernel.user_data = &one;
    implementation.kernel.run = &Seeded::run;
    implementation.flags = one.right->flags;
    runtime.implement(implementation).value().keep();
  }
}

}  // namespace opmux::seeded
