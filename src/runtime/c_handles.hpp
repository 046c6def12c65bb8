#pragma once

#include <memory>
#include <utility>

#include <opmux/opmux.h>
#include <opmux/runtime.hpp>

#include "dispatch/operator_slot.hpp"
#include "runtime/c_arguments.hpp"

/// Definitions of the opaque types of opmux.h. An opmux_operator is a reinterpreted
/// dispatch::OperatorSlot.
struct opmux_runtime {
  opmux::Runtime cpp;
};

struct opmux_registration {
  opmux::Registration cpp;
};

struct opmux_constant {
  opmux::Constant cpp;
};

struct opmux_plan {
  opmux::Plan cpp;
  opmux::dispatch::OperatorSlot* slot;
  /// The arguments that opmux_plan_run_unchecked uses.
  std::unique_ptr<opmux::runtime::CArguments> arguments;
};

namespace opmux::runtime {

inline dispatch::OperatorSlot& slot_of(opmux_operator* op) {
  return *reinterpret_cast<dispatch::OperatorSlot*>(op);
}

inline std::string_view view_of(opmux_str text) {
  return {text.data == nullptr ? "" : text.data, text.data == nullptr ? 0 : text.size};
}

inline opmux_str str_of(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace opmux::runtime
