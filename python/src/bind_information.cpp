#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/runtime.hpp>

#include "bindings.hpp"
#include "callable_types.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

/// A range without an upper limit has most = None in Python, and 0 in C++.
void bind_hint(nb::module_& module) {
  nb::class_<Hint>(
      module, "Hint",
      "The priority of an implementation for calls in which a dimension is in a range.")
      .def(
          "__init__",
          [](Hint* own, std::string dim, int priority, int64_t least, std::optional<int64_t> most) {
            if (most && *most <= 0) throw nb::value_error("most must be at least 1, or None");
            new (own) Hint{std::move(dim), least, most.value_or(0), priority};
          },
          nb::arg("dim"), nb::kw_only(), nb::arg("priority"), nb::arg("least") = 0,
          nb::arg("most") = nb::none())
      .def_ro("dim", &Hint::dim)
      .def_ro("priority", &Hint::priority)
      .def_ro("least", &Hint::least)
      .def_prop_ro("most",
                   [](const Hint& own) {
                     return own.most == 0 ? std::nullopt : std::optional<int64_t>(own.most);
                   })
      .def("__repr__", [](const Hint& own) {
        return "<Hint " + std::to_string(own.priority) + " for " + own.range() + ">";
      });
}

void bind_tuning(nb::module_& module) {
  nb::class_<Measurement>(module, "Measurement",
                          "A measured speed of an implementation that applies to a call.")
      .def_ro("verdict", &Measurement::verdict)
      .def_ro("baseline", &Measurement::baseline)
      .def_ro("speed", &Measurement::speed)
      .def_ro("low", &Measurement::low)
      .def_ro("high", &Measurement::high)
      .def_ro("rounds", &Measurement::rounds)
      .def_ro("rigor", &Measurement::rigor)
      .def_ro("date", &Measurement::date)
      .def_ro("cell", &Measurement::cell)
      .def_ro("range", &Measurement::range)
      .def_ro("bundle", &Measurement::bundle)
      .def_ro("digest", &Measurement::digest)
      .def_ro("found_in", &Measurement::found_in)
      .def_ro("machine", &Measurement::machine)
      .def_ro("aged", &Measurement::aged);
  const auto count = [](uint64_t TuningCounts::* member) {
    return [member](const TuningBundle& own) { return own.counts.*member; };
  };
  nb::class_<TuningProposal>(module, "TuningProposal",
                             "A faster implementation that a runtime found by measuring a call.")
      .def_ro("op", &TuningProposal::op)
      .def_ro("implementation", &TuningProposal::implementation, "Id of the faster one.")
      .def_ro("baseline", &TuningProposal::baseline, "Id of the one that calls ran.")
      .def_ro("cell", &TuningProposal::cell)
      .def_ro("speed", &TuningProposal::speed)
      .def_ro("low", &TuningProposal::low)
      .def_ro("high", &TuningProposal::high)
      .def_ro("rounds", &TuningProposal::rounds)
      .def_ro("time", &TuningProposal::time)
      .def_ro("applied", &TuningProposal::applied)
      .def_ro("why_not", &TuningProposal::why_not);
  nb::class_<TuningBundle>(
      module, "TuningBundle",
      "A bundle of measured speeds that was found, or a file that was refused.")
      .def_ro("path", &TuningBundle::path)
      .def_ro("found_in", &TuningBundle::found_in)
      .def_ro("digest", &TuningBundle::digest)
      .def_ro("problem", &TuningBundle::problem)
      .def_ro("signer", &TuningBundle::signer)
      .def_ro("rows", &TuningBundle::rows)
      .def_prop_ro("used", count(&TuningCounts::used))
      .def_prop_ro("aged", count(&TuningCounts::aged))
      .def_prop_ro("foreign", count(&TuningCounts::foreign))
      .def_prop_ro("stale", count(&TuningCounts::stale))
      .def_prop_ro("damaged", count(&TuningCounts::damaged))
      .def("__repr__", [](const TuningBundle& own) {
        return "<TuningBundle " + own.path + " " + std::to_string(own.rows) + " rows>";
      });
}

void bind_explanation(nb::module_& module) {
  nb::class_<Candidate>(module, "Candidate", "One candidate of a decision and its verdict.")
      .def_ro("id", &Candidate::id)
      .def_ro("verdict", &Candidate::verdict)
      .def_ro("code", &Candidate::code)
      .def_ro("reason", &Candidate::reason)
      .def_ro("priority", &Candidate::priority)
      .def_ro("score", &Candidate::score)
      .def_ro("transforms", &Candidate::transforms)
      .def_ro("hint", &Candidate::hint)
      .def_ro("measured", &Candidate::measured)
      .def_prop_ro("accepted", &Candidate::accepted)
      .def("__repr__",
           [](const Candidate& own) { return "<Candidate " + own.id + " " + own.verdict + ">"; });
  nb::class_<Explanation>(module, "Explanation",
                          "The reasons for a decision. Print it, or read its fields.")
      .def_ro("op", &Explanation::op)
      .def_ro("arguments", &Explanation::arguments)
      .def_ro("device", &Explanation::device)
      .def_ro("generation", &Explanation::generation)
      .def_ro("chosen", &Explanation::chosen)
      .def_ro("strict", &Explanation::strict)
      .def_ro("candidates", &Explanation::candidates)
      .def_ro("depends_on", &Explanation::depends_on)
      .def_ro("independent", &Explanation::independent)
      .def_ro("note", &Explanation::note)
      .def("to_json", [](const Explanation& own) { return to_json(own); })
      .def("to_text", &Explanation::to_string);
}

const char* word_of(ArgTag type) {
  switch (type) {
    case ArgTag::tensor: return "Tensor";
    case ArgTag::integer: return "int";
    case ArgTag::floating: return "float";
    case ArgTag::logical: return "bool";
    case ArgTag::enumeration: return "enum";
    case ArgTag::string: return "str";
    case ArgTag::integer_list: return "int[]";
    case ArgTag::tensor_list: return "Tensor[]";
    default: return "";
  }
}

void bind_arguments(nb::module_& module) {
  nb::class_<ArgumentInfo>(module, "ArgumentInfo", "One argument of an operator's schema.")
      .def_ro("name", &ArgumentInfo::name)
      .def_prop_ro("type", [](const ArgumentInfo& own) { return word_of(own.type); })
      .def_ro("optional", &ArgumentInfo::optional)
      .def_ro("output", &ArgumentInfo::output)
      .def_ro("updated", &ArgumentInfo::updated)
      .def_ro("words", &ArgumentInfo::words)
      .def_ro("any_shape", &ArgumentInfo::any_shape)
      .def_ro("dims", &ArgumentInfo::dims)
      .def_ro("dtype_variable", &ArgumentInfo::dtype_variable)
      .def_ro("may_alias", &ArgumentInfo::may_alias)
      .def_ro("constant", &ArgumentInfo::constant)
      .def_ro("default_text", &ArgumentInfo::default_text)
      .def_ro("integer", &ArgumentInfo::integer)
      .def("__repr__", [](const ArgumentInfo& own) {
        return std::string("<ArgumentInfo ") + word_of(own.type) + " " + own.name + ">";
      });
  module.def("arguments", [](nb::handle op) {
    const OperatorCall* const call = operator_of(op.ptr());
    if (call == nullptr) throw nb::type_error("expected an operator");
    return call->op().arguments();
  });
}

void bind_lists(nb::module_& module) {
  nb::class_<ImplementationInfo>(module, "ImplementationInfo", "One implementation.")
      .def_ro("id", &ImplementationInfo::id)
      .def_ro("backend", &ImplementationInfo::backend)
      .def_ro("kind", &ImplementationInfo::kind)
      .def_ro("vendor", &ImplementationInfo::vendor)
      .def_ro("priority", &ImplementationInfo::priority)
      .def_ro("available", &ImplementationInfo::available)
      .def_ro("reason", &ImplementationInfo::reason)
      .def_ro("calls", &ImplementationInfo::calls)
      .def_ro("breaker", &ImplementationInfo::breaker)
      .def_ro("hints", &ImplementationInfo::hints)
      .def_prop_ro("promises",
                   [](const ImplementationInfo& own) {
                     constexpr std::pair<uint32_t, const char*> kWords[] = {
                         {OPMUX_IMPL_SERIAL, "serial"},
                         {OPMUX_IMPL_ATOMIC_OUTPUTS, "atomic_outputs"},
                         {OPMUX_IMPL_DETERMINISTIC, "deterministic"},
                         {OPMUX_IMPL_BATCH_INVARIANT, "batch_invariant"},
                         {OPMUX_IMPL_CAPTURE_SAFE, "capture_safe"}};
                     nb::list words;
                     for (const auto& [flag, word] : kWords) {
                       if ((own.flags & flag) != 0) words.append(word);
                     }
                     return words;
                   })
      .def_prop_ro("instance",
                   [](const ImplementationInfo& own) {
                     nb::dict attributes;
                     for (const auto& [key, value] : own.instance) {
                       attributes[nb::str(key.c_str(), key.size())] =
                           nb::str(value.c_str(), value.size());
                     }
                     return attributes;
                   })
      .def("__repr__",
           [](const ImplementationInfo& own) { return "<Implementation " + own.id + ">"; });
  nb::class_<OperatorInfo>(module, "OperatorInfo", "One operator with its implementations.")
      .def_ro("name", &OperatorInfo::name)
      .def_ro("schema", &OperatorInfo::schema)
      .def_ro("summary", &OperatorInfo::summary)
      .def_ro("implementations", &OperatorInfo::implementations)
      .def("__repr__", [](const OperatorInfo& own) { return "<OperatorInfo " + own.name + ">"; });
}

void bind_stats(nb::module_& module) {
  nb::class_<CallStats>(module, "CallStats",
                        "Counters of one implementation, summed over all threads.")
      .def_ro("implementation", &CallStats::implementation)
      .def_ro("calls", &CallStats::calls)
      .def_ro("declined", &CallStats::declined)
      .def_ro("failed", &CallStats::failed)
      .def_ro("resource", &CallStats::resource)
      .def_ro("invalid_argument", &CallStats::invalid_argument)
      .def_ro("device_lost", &CallStats::device_lost)
      .def_ro("stood_in", &CallStats::stood_in)
      .def_ro("decided_each_time", &CallStats::decided_each_time)
      .def_ro("packed_bytes", &CallStats::packed_bytes)
      .def("__repr__", [](const CallStats& own) {
        return "<CallStats " + own.implementation + " calls=" + std::to_string(own.calls) + ">";
      });
}

void bind_process(nb::module_& module) {
  nb::class_<PluginInfo>(module, "PluginInfo",
                         "A plugin that was found, and whether it was loaded.")
      .def_ro("path", &PluginInfo::path)
      .def_ro("name", &PluginInfo::name)
      .def_ro("loaded", &PluginInfo::loaded)
      .def_ro("code", &PluginInfo::code)
      .def_ro("reason", &PluginInfo::reason)
      .def_ro("backends", &PluginInfo::backends)
      .def_ro("implementations", &PluginInfo::implementations)
      .def_ro("found_in", &PluginInfo::found_in)
      .def_ro("version", &PluginInfo::version)
      .def_ro("vendor", &PluginInfo::vendor)
      .def_ro("digest", &PluginInfo::digest)
      .def_ro("signer", &PluginInfo::signer)
      .def_ro("warnings", &PluginInfo::warnings)
      .def("__repr__", [](const PluginInfo& own) {
        return "<PluginInfo " + own.name + (own.loaded ? " loaded>" : " refused>");
      });
  nb::class_<SettingInfo>(module, "SettingInfo", "One effective setting and its origin.")
      .def_ro("key", &SettingInfo::key)
      .def_ro("value", &SettingInfo::value)
      .def_ro("origin", &SettingInfo::origin)
      .def("__repr__", [](const SettingInfo& own) {
        return "<SettingInfo " + own.key + "=" + own.value + " from " + own.origin + ">";
      });
}

}  // namespace

void bind_information(nb::module_& module) {
  bind_hint(module);
  bind_tuning(module);
  bind_explanation(module);
  bind_arguments(module);
  bind_lists(module);
  bind_stats(module);
  bind_process(module);
}

}  // namespace opmux::python
