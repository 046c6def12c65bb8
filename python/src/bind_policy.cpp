#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <opmux/policy.hpp>

#include "bindings.hpp"
#include "policy/rules/rule_fields.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

Compare compare_of(const std::string& word) {
  static const std::pair<const char*, Compare> words[] = {
      {"==", Compare::equal},      {"!=", Compare::not_equal}, {"<", Compare::less},
      {"<=", Compare::less_equal}, {">", Compare::greater},    {">=", Compare::greater_equal},
      {"%", Compare::multiple_of}};
  for (const auto& [text, compare] : words) {
    if (word == text) return compare;
  }
  throw nb::value_error("a comparison must be one of == != < <= > >= %");
}

void bind_condition(nb::module_& module) {
  nb::class_<Condition>(module, "Condition",
                        "A condition of a rule on a call; combine conditions with &, | and ~.")
      .def_static(
          "parse",
          [](std::string_view text) {
            Result<Condition> parsed = Condition::parse(text);
            if (!parsed) throw Error(parsed.error());
            return *parsed;
          },
          nb::arg("text"), "Parses a condition in the syntax of policy files.")
      .def_static("dim",
                  [](std::string name, const std::string& compare, int64_t value) {
                    return Condition::dim(std::move(name), compare_of(compare), value);
                  })
      .def_static("rows", [](const std::string& compare,
                             int64_t value) { return Condition::rows(compare_of(compare), value); })
      .def_static("dtype",
                  [](std::string arg, const std::string& dtype) {
                    const DType parsed = parse_dtype(dtype);
                    if (parsed.bits == 0)
                      throw nb::value_error(("unknown dtype '" + dtype + "'").c_str());
                    return Condition::dtype(std::move(arg), parsed);
                  })
      .def_static("rank",
                  [](std::string arg, const std::string& compare, int64_t value) {
                    return Condition::rank(std::move(arg), compare_of(compare), value);
                  })
      .def_static("present", &Condition::present)
      .def_static("contiguous", &Condition::contiguous)
      .def_static("aligned", &Condition::aligned)
      .def_static("layout", &Condition::layout)
      .def_static("scalar",
                  [](std::string arg, const std::string& compare, int64_t value) {
                    return Condition::scalar(std::move(arg), compare_of(compare), value);
                  })
      .def_static("scalar",
                  [](std::string arg, const std::string& compare, double value) {
                    return Condition::real(std::move(arg), compare_of(compare), value);
                  })
      .def_static("ambient", &Condition::ambient)
      .def("__and__", [](const Condition& a, const Condition& b) { return a && b; })
      .def("__or__", [](const Condition& a, const Condition& b) { return a || b; })
      .def("__invert__", [](const Condition& own) { return !own; })
      .def("__str__", &Condition::to_string)
      .def("__repr__", [](const Condition& own) { return "<Condition " + own.to_string() + ">"; });
}

void bind_rule(nb::module_& module) {
  nb::class_<Boost>(module, "Boost", "Changes the score of the matching implementations.")
      .def(
          "__init__",
          [](Boost* self, std::string impl, double add, double multiply) {
            new (self) Boost{std::move(impl), add, multiply};
          },
          nb::arg("impl"), nb::arg("add") = 0.0, nb::arg("multiply") = 1.0)
      .def_rw("impl", &Boost::impl)
      .def_rw("add", &Boost::add)
      .def_rw("multiply", &Boost::multiply);
  nb::class_<Rule> rule(module, "Rule", "One rule of a policy.");
  rule.def(nb::init<>());
  policy::for_each_rule_field([&]<class T>(const policy::RuleField<T>& field) {
    if (field.python.empty()) return;
    const std::string name(field.key);
    if constexpr (requires(T value) { value.has_value(); }) {
      rule.def_rw(name.c_str(), field.member, nb::arg().none());
    } else {
      rule.def_rw(name.c_str(), field.member);
    }
  });
}

/// Not inlined, because g++ 12 would warn at -O2 that the converted string may be uninitialised.
[[gnu::noinline]] std::optional<Tuning> tuning_of(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  for (const Tuning each : {Tuning::off, Tuning::bundle, Tuning::online, Tuning::online_apply}) {
    if (*word == name_of(each)) return each;
  }
  throw nb::value_error(
      ("tuning must be 'off', 'bundle', 'online' or 'online_apply', not '" + *word + "'").c_str());
}

}  // namespace

void bind_policy(nb::module_& module) {
  bind_condition(module);
  bind_rule(module);
  nb::class_<Policy>(module, "Policy", "Preferences and constraints for choosing implementations.")
      .def(nb::init<>())
      .def_rw("prefer", &Policy::prefer)
      .def_rw("require", &Policy::require)
      .def_rw("deny", &Policy::deny)
      .def_rw("allow", &Policy::allow)
      .def_rw("strict", &Policy::strict, nb::arg().none())
      .def_rw("allow_vendors", &Policy::allow_vendors)
      .def_rw("deny_vendors", &Policy::deny_vendors)
      .def_rw("per_op", &Policy::per_op)
      .def_rw("transforms", &Policy::transforms)
      .def_rw("allow_none", &Policy::allow_none)
      .def_prop_rw(
          "tuning",
          [](const Policy& own) -> std::optional<std::string> {
            if (!own.tuning) return std::nullopt;
            return std::string(name_of(*own.tuning));
          },
          [](Policy& own, const std::optional<std::string>& word) { own.tuning = tuning_of(word); },
          nb::arg().none())
      .def_rw("rules", &Policy::rules);
}

}  // namespace opmux::python
