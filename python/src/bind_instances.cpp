#include <algorithm>
#include <memory>
#include <string>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "ambient.hpp"
#include "bindings.hpp"
#include "callable_types.hpp"
#include "engine_call.hpp"
#include "errors.hpp"
#include "held_instance.hpp"
#include "unpacked.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

/// The arguments that an instance fixes, as the frame of a call without others has them.
std::vector<NamedArgument> named_arguments(const Signature& signature, const ArgumentFrame& frame,
                                           const std::vector<opmux_arg>& all) {
  std::vector<NamedArgument> named;
  for (size_t i = 0; i < all.size(); ++i) {
    if (frame.given[i] == nullptr) continue;
    named.emplace_back(signature.parameters()[i].name, all[i]);
  }
  return named;
}

/// Which arguments calls pass, and the addresses of the tensors among the fixed ones.
void note_arguments(const Operator& op, const ArgumentFrame& frame,
                    const std::vector<opmux_arg>& all, HeldInstance& made) {
  for (const std::string& name : made.instance.arguments()) {
    made.passed.push_back(static_cast<uint8_t>(op.position(name).value()));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (frame.given[i] == nullptr || all[i].tag != OPMUX_ARG_TENSOR) continue;
    made.parameters.emplace_back(static_cast<uint8_t>(i), frame.values[i].tensor->data());
  }
}

[[noreturn]] void refuse(const char* reason, const std::string& message) {
  throw Error(Status(Code::invalid_argument, reason, message));
}

/// Refuses arguments that the call would not use, and tensors that moved since the instance was
/// made.
void check_frame(const HeldInstance& own, const Signature& signature, const ArgumentFrame& frame) {
  const auto name_of = [&](size_t i) {
    return signature.name() + ": '" + signature.parameters()[i].name + "' ";
  };
  const nb::handle fixed(own.fixed.get());
  for (size_t i = 0; i < signature.size(); ++i) {
    if (frame.given[i] == nullptr || std::ranges::find(own.passed, i) != own.passed.end()) continue;
    if (!nb::cast<nb::dict>(fixed).contains(signature.parameters()[i].name.c_str()))
      refuse("python.arguments", name_of(i) + "is an option: name it when making the instance");
  }
  for (const auto& [i, data] : own.parameters) {
    if (frame.values[i].tensor->data() != data)
      refuse("python.instance_moved", name_of(i) + "has moved: make a new instance");
  }
}

/// Converts the arguments of a call together with the fixed ones and calls use(op, frame).
template <class Use>
auto with_fixed(const HeldInstance& own, const nb::args& args, const nb::kwargs& kwargs,
                Use&& use) {
  OperatorCall& op = *operator_of(own.op.get());
  auto all = nb::borrow<nb::kwargs>(nb::steal(PyDict_Copy(kwargs.ptr())));
  for (const auto& [name, value] : nb::borrow<nb::dict>(own.fixed.get())) {
    if (all.contains(name)) {
      refuse("python.arguments", op.signature().name() + ": '" + nb::cast<std::string>(name) +
                                     "' is fixed by the instance");
    }
    all[name] = value;
  }
  const Unpacked unpacked(args, all);
  const OperatorCall::Lease frame(op);
  const ArgumentFrame::Converted converted =
      frame->take(unpacked.objects.data(), unpacked.count, unpacked.names.ptr());
  if (converted == ArgumentFrame::Converted::reroute) frame->raise_not_taken();
  if (converted != ArgumentFrame::Converted::ok) nb::raise_python_error();
  check_frame(own, op.signature(), *frame);
  return use(op, *frame);
}

nb::object call(const HeldInstance& own, const nb::args& args, const nb::kwargs& kwargs) {
  return with_fixed(own, args, kwargs, [&](const OperatorCall& op, ArgumentFrame& frame) {
    std::vector<Reference> made;
    if (frame.lacks_output() && !allocate_outputs(op.op(), frame, made)) nb::raise_python_error();
    PyObject* const result = call_instance(op, own, frame);
    if (result == nullptr) nb::raise_python_error();
    return nb::steal(result);
  });
}

Explanation explain(const HeldInstance& own, const nb::args& args, const nb::kwargs& kwargs) {
  return with_fixed(own, args, kwargs, [&](const OperatorCall& op, ArgumentFrame& frame) {
    const Surroundings around(*op.runtime().runtime);
    return explain_instance(own, frame);
  });
}

nb::list states(const HeldInstance& own) {
  nb::list all;
  for (const InstanceState& state : own.instance.states()) {
    nb::dict attributes, one;
    for (const auto& [key, value] : state.attributes) attributes[key.c_str()] = value;
    one["implementation"] = state.implementation;
    one["bytes"] = state.bytes;
    one["attributes"] = attributes;
    all.append(one);
  }
  return all;
}

}  // namespace

PyObject* new_instance(PyObject* op_object, PyObject* const* values, PyObject* keywords) {
  OperatorCall& op = *operator_of(op_object);
  const OperatorCall::Lease frame(op);
  if (frame->take(values, 0, keywords) != ArgumentFrame::Converted::ok) {
    if (PyErr_Occurred() == nullptr) frame->raise_not_taken();
    return nullptr;
  }
  Reference fixed = Reference::steal(PyDict_New());
  const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; fixed && i < count; ++i) {
    if (PyDict_SetItem(fixed.get(), PyTuple_GET_ITEM(keywords, i), values[i]) != 0) return nullptr;
  }
  if (!fixed) return nullptr;
  const std::vector<opmux_arg> all = frame->c_arguments();
  auto made = op.op().instance(named_arguments(op.signature(), *frame, all));
  if (!made) {
    raise(made.error());
    return nullptr;
  }
  auto own = std::make_unique<HeldInstance>(
      HeldInstance{Reference::borrow(op_object), std::move(fixed), {}, {}, *std::move(made)});
  note_arguments(op.op(), *frame, all, *own);
  return nb::cast(own.release(), nb::rv_policy::take_ownership).release().ptr();
}

void bind_instances(nb::module_& module) {
  nb::class_<HeldInstance>(module, "Instance",
                           "An operator with some arguments fixed, and the state that "
                           "implementations keep for it; made by Operator.instance().")
      .def("__call__", &call, nb::arg("args"), nb::arg("kwargs"),
           "Calls the operator with the fixed arguments and these.")
      .def("explain", &explain, nb::arg("args"), nb::arg("kwargs"),
           "Returns the decision that a call with these arguments would make.")
      .def(
          "reset", [](HeldInstance& own) { own.instance.reset(); },
          "Destroys the state: the next call makes a new one.")
      .def_prop_ro("states", &states,
                   "The kept objects: dicts with implementation, bytes and attributes.")
      .def_prop_ro(
          "arguments", [](const HeldInstance& own) { return own.instance.arguments(); },
          "Names of the arguments that calls pass.")
      .def_prop_ro(
          "operator", [](const HeldInstance& own) { return nb::borrow(own.op.get()); },
          "The operator.")
      .def("__repr__", [](const HeldInstance& own) {
        return "<opmux instance of " + operator_of(own.op.get())->signature().name() + ">";
      });
}

}  // namespace opmux::python
