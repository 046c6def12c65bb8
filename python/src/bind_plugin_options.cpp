#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/options.hpp>

#include "bindings.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

Trust trust_of(const std::string& word) {
  for (const Trust trust : {Trust::any, Trust::digest, Trust::signed_only}) {
    if (name_of(trust) == word) return trust;
  }
  throw nb::value_error("trust must be 'any', 'digest' or 'signed'");
}

void make(PluginOptions* own, std::vector<std::string> folders, const std::string& trust,
          std::string keyring, std::vector<std::string> digests, bool sealed, bool probe,
          uint64_t max_bytes, bool require_confinement) {
  new (own) PluginOptions{
      std::move(folders), trust_of(trust),    std::move(keyring), std::move(digests), sealed, probe,
      max_bytes,          require_confinement};
}

}  // namespace

void bind_plugin_options(nb::module_& module) {
  const PluginOptions usual;
  nb::class_<PluginOptions>(module, "PluginOptions",
                            "The folders to search for plugins, and the trust that they need.")
      .def("__init__", &make, nb::kw_only(), nb::arg("folders") = usual.folders,
           nb::arg("trust") = "any", nb::arg("keyring") = "", nb::arg("digests") = usual.digests,
           nb::arg("sealed") = usual.sealed, nb::arg("probe") = usual.probe,
           nb::arg("max_bytes") = usual.max_bytes,
           nb::arg("require_confinement") = usual.require_confinement)
      .def_rw("folders", &PluginOptions::folders)
      .def_prop_rw(
          "trust", [](const PluginOptions& own) { return std::string(name_of(own.trust)); },
          [](PluginOptions& own, const std::string& word) { own.trust = trust_of(word); })
      .def_rw("keyring", &PluginOptions::keyring)
      .def_rw("digests", &PluginOptions::digests)
      .def_rw("sealed", &PluginOptions::sealed)
      .def_rw("probe", &PluginOptions::probe)
      .def_rw("max_bytes", &PluginOptions::max_bytes)
      .def_rw("require_confinement", &PluginOptions::require_confinement);
}

}  // namespace opmux::python
