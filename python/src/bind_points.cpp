#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <opmux/points.hpp>
#include <opmux/typed.hpp>

#include "bindings.hpp"
#include "kept_function.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

/// Returns the type names of a signature such as "gemm.tile_n(Device, int) -> int", with the result
/// type last.
std::vector<std::string> types_of(const std::string& signature) {
  std::vector<std::string> types;
  std::string word;
  const size_t open = signature.find('('), arrow = signature.find("->");
  if (open == std::string::npos || arrow == std::string::npos) {
    throw nb::value_error("a point's signature must have the form name(types) -> type");
  }
  const auto end_word = [&] {
    if (!word.empty()) types.push_back(std::exchange(word, {}));
  };
  for (size_t i = open + 1; i < signature.size(); ++i) {
    const char c = signature[i];
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return types;
}

opmux_arg argument_of(const std::string& type, nb::handle value, std::string& text) {
  if (type == "Device") {
    // A tuple, because the conversion of one item could change a list.
    const auto [kind, id] = nb::cast<std::pair<int32_t, int32_t>>(nb::tuple(value));
    return detail::point_argument(Device{kind, id});
  }
  if (type == "bool") return detail::point_argument(nb::cast<bool>(value));
  if (type == "int") return detail::point_argument(nb::cast<int64_t>(value));
  if (type == "float") return detail::point_argument(nb::cast<double>(value));
  text = nb::cast<std::string>(value);
  return detail::point_argument(text);
}

nb::object object_of(const std::string& type, const opmux_arg& arg) {
  if (type == "Device") {
    const Device device = detail::point_value<Device>(arg);
    return nb::make_tuple(device.type, device.id);
  }
  if (type == "bool") return nb::cast(detail::point_value<bool>(arg));
  if (type == "int") return nb::cast(detail::point_value<int64_t>(arg));
  if (type == "float") return nb::cast(detail::point_value<double>(arg));
  return nb::cast(detail::point_value<std::string>(arg));
}

/// The arguments of a question, with the texts that they borrow.
struct Question {
  std::vector<std::string> types, texts;
  std::vector<opmux_arg> packed;

  Question(const std::string& signature, const nb::args& args)
      : types(types_of(signature)), texts(types.size()) {
    if (args.size() + 1 != types.size()) {
      throw nb::type_error(
          (signature + " takes " + std::to_string(types.size() - 1) + " arguments").c_str());
    }
    for (size_t i = 0; i < args.size(); ++i) {
      packed.push_back(argument_of(types[i], args[i], texts[i]));
    }
  }
  uint32_t count() const { return static_cast<uint32_t>(packed.size()); }
};

nb::object ask(HeldRuntime& held, const std::string& signature, const nb::args& args) {
  const Question question(signature, args);
  opmux_arg answer{};
  const Status status = detail::find_answer(*held.runtime, signature, question.packed.data(),
                                            question.count(), answer);
  if (status.code() == Code::declined) return nb::none();
  if (!status.ok()) throw Error(status);
  return nb::make_tuple(object_of(question.types.back(), answer));
}

PointInfo explain(HeldRuntime& held, const std::string& signature, const nb::args& args) {
  if (args.empty()) return explain_point(*held.runtime, signature).value();
  const Question question(signature, args);
  return explain_point(*held.runtime, signature, question.packed.data(), question.count()).value();
}

/// Calls the Python function that answers for a backend; None means no answer.
bool answer_with(PyObject* function, const std::vector<std::string>& types, const opmux_arg* args,
                 uint32_t count, opmux_arg& answer) {
  const WithGil gil;
  if (!gil) return false;
  try {
    nb::list given;
    for (uint32_t i = 0; i < count; ++i) given.append(object_of(types[i], args[i]));
    const nb::object result = called(function, nb::tuple(given));
    if (result.is_none()) return false;
    thread_local std::string kept;  // the caller copies it before the next call on this thread
    answer = argument_of(types.back(), result, kept);
    return true;
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("answer of a point");
  } catch (const std::exception&) {
    answer = {};  // has the type of no answer, so that the point logs and skips it
    return true;
  }
  return false;
}

Registration answer(HeldRuntime& held, const std::string& signature, const std::string& backend,
                    const nb::object& function) {
  // Leaked on purpose: any thread may ask the point until the process ends.
  PyObject* const kept = nb::object(function).release().ptr();
  return detail::answer_point(*held.runtime, signature, backend,
                              [kept, types = types_of(signature)](
                                  const opmux_arg* args, uint32_t count, opmux_arg& result) {
                                return answer_with(kept, types, args, count, result);
                              })
      .value();
}

}  // namespace

void bind_points(nb::module_& module) {
  nb::class_<PointCandidate>(module, "PointCandidate", "A backend that can answer a point.")
      .def_ro("backend", &PointCandidate::backend)
      .def_ro("plugin", &PointCandidate::plugin)
      .def_ro("priority", &PointCandidate::priority)
      .def_ro("verdict", &PointCandidate::verdict)
      .def_ro("code", &PointCandidate::code)
      .def_ro("reason", &PointCandidate::reason)
      .def("__repr__", [](const PointCandidate& own) {
        return "<PointCandidate " + own.backend + " " + own.verdict + ">";
      });
  nb::class_<PointInfo>(module, "PointInfo", "A specialization point and its answers.")
      .def_ro("name", &PointInfo::name)
      .def_ro("signature", &PointInfo::signature)
      .def_ro("declared", &PointInfo::declared)
      .def_ro("candidates", &PointInfo::candidates)
      .def_ro("answer", &PointInfo::answer)
      .def("__str__", &PointInfo::to_string)
      .def("__repr__", [](const PointInfo& own) { return "<PointInfo " + own.signature + ">"; });
  module.def("list_points", [](const HeldRuntime& held) { return list_points(*held.runtime); });
  module.def("explain_point", &explain);
  module.def("declare_point", [](HeldRuntime& held, const std::string& signature) {
    const Status status = detail::declare_point(*held.runtime, signature);
    if (!status.ok()) throw Error(status);
  });
  module.def("ask_point", &ask);
  module.def("answer_point", &answer, nb::keep_alive<0, 1>());
}

}  // namespace opmux::python
