#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/state_page.hpp>

#include "ambient.hpp"
#include "bindings.hpp"
#include "callable_types.hpp"
#include "engine_call.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "held_types.hpp"
#include "scope_object.hpp"
#include "unpacked.hpp"

namespace nb = nanobind;

namespace opmux::python {

const HeldConstant* held_constant(PyObject* object) {
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<HeldConstant>().ptr());
  return Py_TYPE(object) == type ? nb::inst_ptr<HeldConstant>(object) : nullptr;
}

namespace {

void require_ok(const Status& status) {
  if (!status.ok()) throw Error(status);
}

/// Makes a sink that passes events to a Python function. Events may come from any thread.
EventSink sink_of(const nb::object& function) {
  if (function.is_none()) return {};
  // Leaked on purpose: events may come until the process ends.
  PyObject* const told = nb::object(function).release().ptr();
  return [told](const Event& event) {
    if (Py_IsInitialized() == 0) return;
    const WithGil gil;
    if (!gil) return;
    const std::string level(name_of(event.level));
    const Reference answer = Reference::steal(guarded([&] {
      return PyObject_CallFunction(told, "sssss", level.c_str(), event.code.c_str(),
                                   event.op.c_str(), event.impl.c_str(), event.text.c_str());
    }));
    if (!answer) PyErr_Clear();
  };
}

PolicyTrust policy_trust_of(const std::string& word) {
  for (const PolicyTrust trust : {PolicyTrust::warn, PolicyTrust::refuse}) {
    if (name_of(trust) == word) return trust;
  }
  throw nb::value_error("policy_trust must be 'warn' or 'refuse'");
}

using Environment = std::vector<std::pair<std::string, std::string>>;

HeldRuntime* create(std::optional<Environment> environment, const PluginOptions& plugins,
                    bool backends, const Policy& policy, const SourceOptions& sources, int threads,
                    const StateOptions& state, const RecordOptions& record, const nb::object& sink,
                    const std::string& policy_trust) {
  Options options;
  options.sink = sink_of(sink);
  options.environment = std::move(environment);
  options.plugins = plugins;
  options.backends = backends;
  options.policy = policy;
  options.sources = sources;
  options.threads = threads;
  options.state = state;
  options.record = record;
  options.policy_trust = policy_trust_of(policy_trust);
  return new HeldRuntime(Runtime::create(options).value());
}

nb::object get_operator(nb::handle_t<HeldRuntime> self, const std::string& name) {
  HeldRuntime& held = nb::cast<HeldRuntime&>(self);
  PyObject* const made = new_operator(self.ptr(), held, held.runtime->op(name).value());
  if (made == nullptr) nb::raise_python_error();
  return nb::steal(made);
}

/// Converts the arguments and calls use(op, frame) in the scope that a call would run in.
template <class Use>
auto with_arguments(nb::handle op_object, const nb::args& args, const nb::kwargs& kwargs,
                    Use&& use) {
  OperatorCall* const op = operator_of(op_object.ptr());
  if (op == nullptr) throw nb::type_error("expected an operator");
  const Unpacked unpacked(args, kwargs);
  const OperatorCall::Lease frame(*op);
  const ArgumentFrame::Converted converted =
      frame->take(unpacked.objects.data(), unpacked.count, unpacked.names.ptr());
  if (converted == ArgumentFrame::Converted::reroute) frame->raise_not_taken();
  if (converted != ArgumentFrame::Converted::ok) nb::raise_python_error();
  const Surroundings around(*op->runtime().runtime);
  return use(*op, *frame);
}

Explanation explain(nb::handle op, const nb::args& args, const nb::kwargs& kwargs) {
  return with_arguments(op, args, kwargs, [](const OperatorCall& call, ArgumentFrame& frame) {
    return call.explain(frame);
  });
}

std::string decide(nb::handle op, const nb::args& args, const nb::kwargs& kwargs) {
  return with_arguments(op, args, kwargs, [](const OperatorCall& call, ArgumentFrame& frame) {
    return call.decide(frame).value();
  });
}

/// Without the GIL, because another thread may hold the lock of the policies while it runs a probe
/// that is written in Python. Other threads may change the object then, hence the copy.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void set_policy(HeldRuntime& own, Policy policy) {
  Status status;
  {
    const ReleasedGil released;
    status = own.runtime->policy().set(policy);
  }
  require_ok(status);
}

nb::object make_scope_of(HeldRuntime& held, const Policy& policy, nb::handle outer,
                         std::optional<std::string> tag, std::optional<int32_t> max_threads,
                         uint32_t ambient, const nb::object& reports) {
  ScopeObject::Content content;
  content.runtime = held.runtime;
  content.outer = Reference::borrow(outer.is_none() ? nullptr : outer.ptr());
  const ScopeObject::Content* around = content_of(content.outer.get());
  while (around != nullptr && around->runtime != held.runtime) {
    around = content_of(around->outer.get());
  }
  if (around != nullptr) {
    content.options = around->options;
    content.has_options = around->has_options;
    ambient |= around->ambient;
  }
  content.scope =
      Scope::make(*held.runtime, policy, around == nullptr ? Scope() : around->scope).value();
  if (tag) content.options.tag = held.runtime->tag(*tag);
  if (max_threads) content.options.max_threads = *max_threads;
  content.ambient = ambient;
  content.has_options |= tag.has_value() || max_threads.has_value();
  if (!reports.is_none()) content.reports = Reference::borrow(reports.ptr());
  Reference made = make_scope(std::move(content));
  if (!made) nb::raise_python_error();
  return nb::steal(made.release());
}

HeldConstant* make_constant(HeldRuntime& held, const nb::object& tensor) {
  TensorSlot slot;
  TorchModes modes;
  const int32_t outcome = slot.read(tensor.ptr(), modes);
  if (outcome == OPMUX_READ_GRAD) return make_constant(held, tensor.attr("detach")());
  if (outcome == OPMUX_READ_ERROR) nb::raise_python_error();
  if (outcome != OPMUX_READ_OK) throw nb::type_error("a constant needs a plain tensor");
  return new HeldConstant{Reference::borrow(tensor.ptr()),
                          held.runtime->constant(slot.view()).value()};
}

/// A policy for this thread that also applies to C++ code called from it.
struct ThreadScope {
  ThreadScope(HeldRuntime& held, Policy wanted)
      : runtime(held.runtime), policy(std::move(wanted)) {}
  void enter() {
    entered = std::make_unique<PolicyScope>(*runtime, policy);
    require_ok(entered->status());
  }
  Runtime* runtime;
  Policy policy;
  std::unique_ptr<PolicyScope> entered;
};

void bind_constant(nb::module_& module) {
  nb::class_<HeldConstant>(
      module, "Constant",
      "A tensor that implementations may pack once; the packed copies belong to it.")
      .def(
          "changed", [](HeldConstant& own) { own.constant.changed(); },
          "Drops the packed copies; call it after changing the tensor's data.")
      .def_prop_ro("version", [](const HeldConstant& own) { return own.constant.version(); })
      .def_prop_ro("packs", [](const HeldConstant& own) { return own.constant.packs(); })
      .def_prop_ro("packed_bytes",
                   [](const HeldConstant& own) { return own.constant.packed_bytes(); })
      .def_prop_ro("tensor", [](const HeldConstant& own) { return nb::borrow(own.tensor.get()); });
}

void bind_thread_scope(nb::module_& module) {
  nb::class_<ThreadScope>(module, "ThreadScope")
      .def(nb::init<HeldRuntime&, Policy>(), nb::keep_alive<1, 2>())
      .def("__enter__",
           [](nb::object self) {
             nb::cast<ThreadScope&>(self).enter();
             return self;
           })
      .def("__exit__", [](ThreadScope& self, const nb::args&) { self.entered.reset(); });
}

}  // namespace

void bind_runtime(nb::module_& module) {
  bind_constant(module);
  nb::class_<HeldRuntime> runtime(module, "Runtime", nb::is_weak_referenceable(),
                                  "A runtime: operators, implementations and policy.");
  bind_policy_texts(runtime);
  bind_quarantine(runtime);
  bind_replay(runtime);
  bind_breakers_of(runtime);
  bind_freezing(runtime);
  runtime
      .def(nb::new_(&create), nb::kw_only(), nb::arg("environment") = nb::none(),
           nb::arg("plugins") = PluginOptions(), nb::arg("backends") = true,
           nb::arg("policy") = Policy(), nb::arg("sources") = SourceOptions(),
           nb::arg("threads") = 0, nb::arg("state") = StateOptions(),
           nb::arg("record") = RecordOptions(), nb::arg("sink") = nb::none(),
           nb::arg("policy_trust") = "warn")
      .def("op", &get_operator, nb::arg("name"), "Returns the operator with that name.")
      .def(
          "define",
          [](HeldRuntime& own, const std::string& schema, bool data_checked) {
            require_ok(own.runtime->define(schema, {data_checked}));
          },
          nb::arg("schema"), nb::kw_only(), nb::arg("data_checked") = false)
      .def(
          "define_all",
          [](HeldRuntime& own, const std::vector<std::string>& schemas, bool data_checked) {
            std::vector<Definition> operators;
            for (const std::string& each : schemas) operators.push_back({each, {data_checked}});
            require_ok(own.runtime->define(operators));
          },
          nb::arg("schemas"), nb::kw_only(), nb::arg("data_checked") = false,
          "Defines several operators in one step: all of them, or none if one is refused.")
      .def("set_policy", [](HeldRuntime& own, const Policy& policy) { set_policy(own, policy); })
      .def("policy", [](const HeldRuntime& own) { return own.runtime->policy().get(); })
      .def("reset_policy", [](HeldRuntime& own) { set_policy(own, {}); })
      .def("warm_up", [](HeldRuntime& own) { own.runtime->plugins().warm_up(); })
      .def(
          "enable_backend",
          [](HeldRuntime& own, const std::string& name, bool on) {
            require_ok(own.runtime->plugins().enable_backend(name, on));
          },
          nb::arg("name"), nb::arg("on") = true)
      .def(
          "set_architecture",
          [](HeldRuntime& own, const std::string& device, const std::string& architecture) {
            const std::optional<Device> named = parse_device(device);
            if (!named) {
              throw nb::value_error(("'" + device + "' is not a device such as cuda:0").c_str());
            }
            require_ok(own.runtime->plugins().set_architecture(*named, architecture));
          },
          nb::arg("device"), nb::arg("architecture"),
          "States the architecture of a device: set_architecture(\"cuda:0\", \"9.0\").")
      .def(
          "set_rank",
          [](HeldRuntime& own, std::optional<int> rank, std::optional<int> tp_size) {
            require_ok(own.runtime->set_rank(rank, tp_size));
          },
          nb::arg("rank").none(), nb::arg("tp_size").none(),
          "States the place of this process, for `rank` and `tp_size` in conditions of rules.")
      .def(
          "use_openmp", [](HeldRuntime& own) { require_ok(own.runtime->use_openmp()); },
          "Runs calls on the threads of the process's OpenMP runtime, which torch also uses.")
      .def("list", [](const HeldRuntime& own) { return own.runtime->list(); })
      .def(
          "load_plugin",
          [](HeldRuntime& own, const std::string& path) {
            const ReleasedGil released;
            return own.runtime->plugins().load(path).value();
          },
          nb::arg("path"),
          "Loads the plugin of one file now, with the checks of the plugin options.")
      .def("plugins", [](const HeldRuntime& own) { return own.runtime->plugins().list(); })
      .def("stats", [](const HeldRuntime& own) { return own.runtime->stats(); })
      .def("settings", [](const HeldRuntime& own) { return own.runtime->settings(); })
      .def("tuning", [](const HeldRuntime& own) { return own.runtime->tuning().bundles(); })
      .def(
          "proposals", [](const HeldRuntime& own) { return own.runtime->tuning().proposals(); },
          "Faster implementations that the runtime found by measuring sampled calls.")
      .def(
          "check_tuning",
          [](const HeldRuntime& own) {
            const ReleasedGil released;
            own.runtime->tuning().check();
          },
          "Reads the measured speeds of all operators, so that tuning() counts them.")
      .def(
          "reload_tuning",
          [](HeldRuntime& own) {
            const ReleasedGil released;
            require_ok(own.runtime->tuning().reload());
          },
          "Uses the bundles that are in the places of the start now.")
      .def(
          "sample_all_calls",
          [](HeldRuntime& own, bool on) { require_ok(own.runtime->tuning().sample_all_calls(on)); },
          nb::arg("on"),
          "Starts or ends sampling of all calls, whose cells write_state_page() writes.")
      .def(
          "write_state_page",
          [](const HeldRuntime& own, const std::string& path) {
            const ReleasedGil released;
            require_ok(opmux::write_state_page(*own.runtime, path));
          },
          nb::arg("path"), "Writes the state of the runtime to a file once.")
      .def("constant", &make_constant, nb::arg("tensor"), nb::keep_alive<0, 1>())
      .def_prop_ro("packed_bytes",
                   [](const HeldRuntime& own) { return own.runtime->packed_bytes(); })
      .def_prop_ro(
          "parameters", [](const HeldRuntime& own) { return own.constants.size(); },
          "The number of torch parameters that are cached as constants.")
      .def_prop_ro("generation", [](const HeldRuntime& own) { return own.runtime->generation(); })
      .def_prop_ro("disabled", [](const HeldRuntime& own) { return own.runtime->disabled(); });
  bind_thread_scope(module);
  module.def("decide", &decide, nb::arg("op"), nb::arg("args"), nb::arg("kwargs"));
  module.def("explain", &explain, nb::arg("op"), nb::arg("args"), nb::arg("kwargs"));
  module.def("make_scope", &make_scope_of, nb::arg("runtime"), nb::arg("policy"),
             nb::arg("outer").none(), nb::arg("tag") = nb::none(),
             nb::arg("max_threads") = nb::none(), nb::arg("ambient") = 0,
             nb::arg("reports") = nb::none());
  module.def(
      "ambient", [](const HeldRuntime& held) { return ambient_around(*held.runtime); },
      nb::arg("runtime"));
}

}  // namespace opmux::python
