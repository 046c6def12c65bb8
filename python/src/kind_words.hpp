#pragma once

#include <string>

#include <nanobind/nanobind.h>

#include <opmux/implementation.hpp>

namespace opmux::python {

/// Parses the name of an implementation kind; throws ValueError for an unknown one.
inline Kind kind_of(const std::string& word) {
  for (const Kind kind : {Kind::default_, Kind::vendor, Kind::reference}) {
    if (name_of(kind) == word) return kind;
  }
  throw nanobind::value_error("kind must be 'default', 'vendor' or 'reference'");
}

}  // namespace opmux::python
