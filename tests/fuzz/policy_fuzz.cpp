// The policy reader on arbitrary text: a refusal must name a position, an accepted policy must be
// applicable.
#include <cstdlib>
#include <memory>
#include <string_view>

#include "policy/files/policy_reader.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/operator_policy.hpp"
#include "policy/rules/policy_set.hpp"
#include "standard_registry.hpp"

namespace {

const opmux::registry::RegistrySnapshot& known_operators() {
  static const auto* const known =
      new opmux::registry::RegistrySnapshot(opmux::test::standard_registry());
  return *known;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opmux;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const registry::RegistrySnapshot& known = known_operators();
  auto policy = policy::parse_policy(text, "p.yaml", &known);
  if (!policy) {
    const Status refused = policy.error();
    if (!refused.message().starts_with("p.yaml:") || !refused.reason().starts_with("policy.")) {
      std::abort();
    }
    return 0;
  }
  (void)policy::lint(*policy, known);
  auto layer = policy::PolicyLayer::make(policy::Source::file, std::move(*policy), "p.yaml");
  if (!layer) std::abort();
  const policy::PolicySet set{{*layer}};
  const Status applicable = policy::dry_run(set, {}, known);
  if (!applicable.ok() && !applicable.reason().starts_with("policy.")) std::abort();
  return 0;
}
