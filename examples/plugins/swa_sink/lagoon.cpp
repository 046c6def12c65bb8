/// A plugin that adds a new operator, its reference, and a faster implementation.
#include "problem.hpp"

namespace op = opmux::plugin;

namespace {

/// Common capabilities: f32 and contiguous heads; all other strides are arbitrary.
op::Caps common() {
  return op::Caps{}
      .dtypes({op::f32})
      .inner_contiguous("y")
      .inner_contiguous("q")
      .inner_contiguous("k")
      .inner_contiguous("v");
}

op::Impl reference() {
  return op::Impl{"lagoon.attention_swa_sink", "two_pass"}
      .signature(lagoon::kSchema)
      .caps(common())
      .flags(OPMUX_IMPL_DETERMINISTIC)
      .run(lagoon::run_reference);
}

op::Impl online() {
  return op::Impl{"lagoon.attention_swa_sink", "online"}
      .signature(lagoon::kSchema)
      .caps(common().at_most("D", 256))
      .flags(OPMUX_IMPL_DETERMINISTIC)
      .verify(
          [](const op::Facts& facts, opmux_error* why) {
            if (facts.scalar("window").value_or(0) <= 1 << 20) return OPMUX_OK;
            return op::decline(why, "lagoon.window", "sums in f32 want a window up to 1048576");
          },
          {{OPMUX_FACT_SCALAR, "window"}})
      .run(lagoon::run_online);
}

}  // namespace

OPMUX_PLUGIN_ENTRY(lagoon) {
  return op::answer(host, out, [] {
    return op::Plugin{"lagoon", "1.0.0"}
        .schema(lagoon::kSchema)
        .add(op::Backend{"lagoon_plain", OPMUX_KIND_REFERENCE}.add(reference()))
        .add(op::Backend{"lagoon", OPMUX_KIND_VENDOR}.vendor("lagoon").add(online()));
  });
}
