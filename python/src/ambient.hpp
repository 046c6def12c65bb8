#pragma once

#include "reference.hpp"

#include <cstdint>
#include <optional>

#include <opmux/policy.hpp>

#include "scope_object.hpp"
#include "type_readers.hpp"

/// The facts about the surroundings of a call from Python: torch's state and the scopes.
namespace opmux::python {

/// The ambient facts (OPMUX_AMBIENT_*) that torch states for this thread; 0 if it is not imported.
uint32_t torch_ambient(TorchModes& modes);

/// Those that a call of this runtime has from Python: torch's and those of the scope around it.
uint32_t ambient_around(const Runtime& runtime);

/// Adds ambient facts to those of the thread for a block.
class AmbientFacts {
 public:
  explicit AmbientFacts(uint32_t facts) : set_(facts != 0) {
    if (set_) before_ = detail::add_ambient(facts);
  }
  ~AmbientFacts() {
    if (set_) detail::set_ambient(before_);
  }
  AmbientFacts(const AmbientFacts&) = delete;
  AmbientFacts& operator=(const AmbientFacts&) = delete;

 private:
  bool set_;
  uint32_t before_ = 0;
};

/// The scope and the ambient facts of a call, for a block that decides without calling.
class Surroundings {
 public:
  explicit Surroundings(const Runtime& runtime)
      : scope_(scopes_alive == 0 ? CurrentScope() : current_scope(runtime)),
        facts_(ambient_around(runtime)) {
    // Without a scope of Python, the scope of the thread applies.
    if (scope_.content != nullptr) entered_.emplace(scope_.content->scope);
  }

 private:
  CurrentScope scope_;
  AmbientFacts facts_;
  std::optional<EnteredScope> entered_;
};

}  // namespace opmux::python
