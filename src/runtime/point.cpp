#include <opmux/typed.hpp>

#include "registry/registry.hpp"
#include "runtime/core.hpp"
#include "runtime/registration.hpp"

namespace opmux::detail {

Status declare_point(Runtime& runtime, const std::string& signature) {
  return runtime.core().registry().declare_point(signature);
}

bool ask_point(Runtime& runtime, const std::string& signature, const opmux_arg* args,
               uint32_t count, opmux_arg& answer) {
  runtime::Core& core = runtime.core();
  const std::string_view name = std::string_view(signature).substr(0, signature.find('('));
  registry::RegistrySnapshotPtr snapshot = core.registry().snapshot();
  if (snapshot->points.find(name) == snapshot->points.end()) {
    if (!core.registry().declare_point(signature).ok()) return false;
    snapshot = core.registry().snapshot();
  }
  const auto found = snapshot->points.find(name);
  if (found == snapshot->points.end()) return false;
  for (const registry::PointAnswer& candidate : found->second->answers) {
    const registry::Backend& backend = *candidate.backend;
    if (!backend.enabled() || backend.lost_by_fork() || core.backend_denied(backend)) continue;
    if (backend.available() && (*candidate.function)(args, count, answer)) return true;
  }
  return false;
}

Result<Registration> answer_point(
    Runtime& runtime, const std::string& signature, std::string_view backend,
    detail::Function<bool(const opmux_arg* args, uint32_t count, opmux_arg& answer)> function) {
  registry::Registry& registry = runtime.core().registry();
  if (Status status = registry.answer_point(signature, backend, std::move(function));
      !status.ok()) {
    return status;
  }
  return Registration(std::make_unique<Registration::Held>(
      runtime.core(), [&registry, signature, name = std::string(backend)] {
        registry.withdraw_answer(signature, name);
      }));
}

}  // namespace opmux::detail
