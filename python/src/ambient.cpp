#include "ambient.hpp"

#include <opmux/opmux.h>

namespace opmux::python {

thread_local constinit uint32_t added_ambient __attribute__((tls_model("initial-exec"))) = 0;

uint32_t read_torch_ambient(TorchModes& modes) {
  if (!knows_torch()) return 0;
  const opmux_reader* const reader = torch_reader_in_use();
  uint32_t facts = 0;
  if (const std::optional<uint32_t> state = modes.state()) {
    facts = *state;
  } else if (reader != nullptr) {
    facts = reader->ambient();
  } else {
    facts = (TorchModes::grad_mode() ? OPMUX_AMBIENT_GRAD : 0) |
            (modes.inference() ? OPMUX_AMBIENT_INFERENCE : 0) |
            (TorchModes::deterministic() ? OPMUX_AMBIENT_DETERMINISTIC : 0) |
            (TorchModes::autocast() ? OPMUX_AMBIENT_AUTOCAST : 0);
  }
  return facts | (TorchModes::capturing() ? OPMUX_AMBIENT_CAPTURING : 0);
}

uint32_t ambient_around(const Runtime& runtime) {
  TorchModes modes;
  const uint32_t facts = torch_ambient(modes);
  if (scopes_alive == 0) return facts;
  const CurrentScope scope = current_scope(runtime);
  return scope.content == nullptr ? facts : facts | scope.content->ambient;
}

}  // namespace opmux::python
