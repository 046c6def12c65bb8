#pragma once

#include "reference.hpp"

#include <cstdint>
#include <optional>

#include <opmux/detail/entered_call.hpp>

#include "scope_object.hpp"
#include "type_readers.hpp"

/// The facts about the surroundings of a call from Python: torch's state and the scopes.
namespace opmux::python {

/// Reads the ambient facts (OPMUX_AMBIENT_*) that torch states for this thread; 0 if it is not
/// imported.
uint32_t read_torch_ambient(TorchModes& modes);
/// The same, without reading those that the native reader has stated.
inline uint32_t torch_ambient(TorchModes& modes) {
  const std::optional<uint32_t> state = modes.state();
  return state && !may_capture ? *state : read_torch_ambient(modes);
}

/// Those that a call of this runtime has from Python: torch's and those of the scope around it.
uint32_t ambient_around(const Runtime& runtime);

/// The ambient facts that the calls from Python around this one have added to those of the thread.
extern thread_local constinit uint32_t added_ambient __attribute__((tls_model("initial-exec")));

/// Adds ambient facts to those of the thread for a block, instead of those that a call from Python
/// around this one has added: its implementation may have changed torch's modes.
class AmbientFacts {
 public:
  explicit AmbientFacts(uint32_t facts) : outer_(added_ambient), changes_((facts | outer_) != 0) {
    if (!changes_) return;
    before_ = detail::change_ambient(outer_, facts);
    added_ambient = facts & ~(before_ & ~outer_);
  }
  ~AmbientFacts() {
    if (!changes_) return;
    detail::set_ambient(before_);
    added_ambient = outer_;
  }
  AmbientFacts(const AmbientFacts&) = delete;
  AmbientFacts& operator=(const AmbientFacts&) = delete;

 private:
  uint32_t outer_;
  bool changes_;
  uint32_t before_ = 0;
};

/// A scope of Python and the ambient facts, for a block that calls.
class ScopeAndFacts {
 public:
  ScopeAndFacts(const Scope& scope, uint32_t facts)
      : outer_(added_ambient), entered_(scope, outer_, facts) {
    added_ambient = facts & ~(entered_.ambient_before() & ~outer_);
  }
  ~ScopeAndFacts() { added_ambient = outer_; }
  ScopeAndFacts(const ScopeAndFacts&) = delete;
  ScopeAndFacts& operator=(const ScopeAndFacts&) = delete;

 private:
  uint32_t outer_;
  detail::EnteredCall entered_;
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
