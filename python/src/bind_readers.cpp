#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "ambient.hpp"
#include "bindings.hpp"
#include "errors.hpp"
#include "runtime_object.hpp"
#include "type_readers.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

void use_reader(const nb::object& capsule) {
  if (capsule.is_none()) return use_torch_reader(nullptr);
  const auto* reader =
      static_cast<const opmux_reader*>(PyCapsule_GetPointer(capsule.ptr(), OPMUX_READER_CAPSULE));
  if (reader == nullptr) nb::raise_python_error();
  if (reader->version != OPMUX_READER_VERSION) {
    throw nb::value_error("the reader was built for another version of opmux: rebuild it");
  }
  use_torch_reader(reader);
}

std::vector<std::tuple<std::string, std::string, std::string>> list_readings() {
  std::vector<std::tuple<std::string, std::string, std::string>> all;
  for (const TypeReading& reading : readings()) {
    all.emplace_back(reading.type, reading.path, reading.detail);
  }
  return all;
}

void set_type(int32_t code, nb::handle type) {
  set_error_type(static_cast<Code>(code), type.ptr());
}

}  // namespace

void bind_readers(nb::module_& module) {
  module.def(
      "learn_torch",
      [](nb::handle tensor, nb::handle parameter, nb::handle grad, nb::handle inference,
         nb::handle mode_flags, nb::handle count_modes, nb::handle deterministic,
         nb::handle autocast, nb::handle capturing) {
        learn_torch({tensor.ptr(), parameter.ptr(), grad.ptr(), inference.ptr(), mode_flags.ptr(),
                     count_modes.ptr(), deterministic.ptr(), autocast.ptr(), capturing.ptr()});
      },
      nb::arg("tensor"), nb::arg("parameter"), nb::arg("is_grad_enabled"),
      nb::arg("is_inference_mode_enabled"), nb::arg("mode_flags"), nb::arg("count_modes"),
      nb::arg("is_deterministic"), nb::arg("is_any_autocast_enabled"),
      nb::arg("is_capturing").none());
  module.def("torch_ambient", [] {
    TorchModes modes;
    return torch_ambient(modes);
  });
  module.attr("reader_version") = OPMUX_READER_VERSION;
  module.def("use_torch_reader", &use_reader, nb::arg("capsule").none());
  module.def("readings", &list_readings);
  module.def("read_path", [](nb::handle type) {
    return static_cast<int>(reader_of(reinterpret_cast<PyTypeObject*>(type.ptr())).path);
  });
  module.def("set_error_type", &set_type);
  module.def(
      "name_device_type",
      [](int32_t type, const std::string& name) {
        const Status status = name_device_type(type, name);
        if (!status.ok()) throw Error(status);
      },
      nb::arg("type"), nb::arg("name"),
      "Names a device type that a vendor defines, 256 to 65535, for the whole process.");
  module.def("set_allocate_hook",
             [](nb::handle hook) { hooks().allocate = Reference::borrow(hook.ptr()); });
  module.def("set_reroute_hook",
             [](nb::handle hook) { hooks().reroute = Reference::borrow(hook.ptr()); });
  module.def("release_gil_from", [] { return release_gil_from; });
  module.def("set_release_gil_from", [](int64_t elements) { release_gil_from = elements; });
}

}  // namespace opmux::python
