// The rules of the trust file on arbitrary bytes: a refusal names the line, and accepted rules are
// at most as strict as those of a file that cannot be used.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/system/trust_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = opmux::base::parse_trust_rules(text);
  const bool named = !rules && rules.error().reason() == "trust.file" &&
                     rules.error().message().starts_with("line ");
  if (!rules) return named ? 0 : (std::abort(), 0);
  const bool refuses = rules->policy_trust == opmux::PolicyTrust::refuse;
  const bool mentioned = text.find("refuse") != text.npos;
  if ((refuses && !mentioned) || !rules->problem.ok() || !rules->file.empty()) std::abort();
  if (rules->require_confinement && text.find("yes") == text.npos) std::abort();
  return 0;
}
