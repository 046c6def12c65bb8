#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "borrowed.hpp"
#include "callable_types.hpp"
#include "dispatch_call.hpp"
#include "dlpack_exchange.hpp"
#include "gil.hpp"
#include "kind_words.hpp"
#include "outside_reads.hpp"
#include "python_kernel.hpp"

namespace nb = nanobind;

namespace opmux::python {
namespace {

/// The facts that a Python verifier may read; `facts` is null after the verifier returned.
struct FactsView {
  const Facts* facts;
};

/// A tensor that a C++ caller passed, for a Python implementation. Valid during the call.
struct BorrowedTensor {
  TensorView view;
};

/// A DLPack tensor handed out to Python, with the storage of its shape and strides.
template <class Managed>
struct HandedOut {
  Managed managed{};
  int64_t shape[OPMUX_MAX_RANK], strides[OPMUX_MAX_RANK];
};

template <class Managed>
nb::object capsule_as(const TensorView& view, const char* name, PyCapsule_Destructor unused) {
  auto* const handed = new HandedOut<Managed>;
  handed->managed.tensor = view.c();
  for (int i = 0; i < OPMUX_MAX_RANK; ++i) {
    handed->shape[i] = view.shape_words()[i];
    handed->strides[i] = view.stride_words()[i];
  }
  handed->managed.tensor.shape = handed->shape;
  handed->managed.tensor.strides = handed->strides;
  handed->managed.context = handed;
  handed->managed.deleter = [](Managed* self) {
    delete static_cast<HandedOut<Managed>*>(self->context);
  };
  if constexpr (requires { handed->managed.version; }) handed->managed.version = {kDlpackMajor, 0};
  return nb::steal(PyCapsule_New(&handed->managed, name, unused));
}

template <class Managed>
void drop_unused(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

/// Libraries that do not ask for a version treat the tensor as read-only.
nb::object capsule_of(const BorrowedTensor& own, const nb::kwargs& asked) {
  constexpr const char* kPlain = "dltensor";
  constexpr const char* kVersioned = "dltensor_versioned";
  const bool versioned = asked.contains("max_version") && !asked["max_version"].is_none() &&
                         nb::cast<std::pair<uint32_t, uint32_t>>(asked["max_version"]).first >= 1;
  if (versioned) {
    return capsule_as<VersionedTensor>(own.view, kVersioned, [](PyObject* capsule) {
      drop_unused<VersionedTensor>(capsule, kVersioned);
    });
  }
  return capsule_as<ManagedTensor>(
      own.view, kPlain, [](PyObject* capsule) { drop_unused<ManagedTensor>(capsule, kPlain); });
}

std::optional<int64_t> get_fact(const FactsView& own, uint32_t kind, const std::string& name) {
  if (own.facts == nullptr) throw nb::value_error("facts can be read only while the verifier runs");
  return own.facts->get(kind, name);
}

Caps caps_of(const nb::dict& given) {
  Caps caps;
  for (const auto& [key_object, value] : given) {
    const std::string key = nb::cast<std::string>(key_object);
    if (key == "dtypes") {
      std::vector<DType> allowed;
      for (const std::string& word : nb::cast<std::vector<std::string>>(value)) {
        allowed.push_back(parse_dtype(word));
        if (allowed.back().bits == 0)
          throw nb::value_error(("unknown dtype '" + word + "'").c_str());
      }
      caps.dtypes(allowed);
    } else if (key == "device") {
      const std::string word = nb::cast<std::string>(value);
      const std::optional<Device> named = parse_device(word);
      if (!named || word.find(':') != word.npos)
        throw nb::value_error(("unknown type of device '" + word + "'").c_str());
      caps.device(named->type);
    } else if (key == "arch") {
      const auto [lowest, highest] = nb::cast<std::pair<std::string, std::string>>(value);
      caps.arch(lowest, highest);
    } else if (key == "contiguous") {
      if (nb::cast<bool>(value)) caps.contiguous();
    } else {
      const auto numbers = nb::cast<std::map<std::string, int64_t>>(value);
      for (const auto& [dim, number] : numbers) {
        if (key == "multiple_of") caps.multiple_of(dim, number);
        if (key == "at_least") caps.at_least(dim, number);
        if (key == "at_most") caps.at_most(dim, number);
        if (key == "equals") caps.equals(dim, number);
      }
    }
  }
  return caps;
}

void withdraw(Registration registration) {
  const Status status = [&] {
    const ReleasedGil released;
    return registration.withdraw();
  }();
  if (!status.ok()) throw Error(status);
}

/// Withdraws a registration kept under `id`; returns false if there is none.
bool withdraw_kept(HeldRuntime& held, const std::string& id) {
  auto kept = held.registrations.extract(id);
  if (kept.empty()) return false;
  withdraw(std::move(kept.mapped()));
  return true;
}

/// An implementation that is not registered yet.
struct ImplementationDraft {
  Implementation implementation;
};

ImplementationDraft draft(HeldRuntime& held, const std::string& id, const nb::object& function,
                          const nb::object& verifier, const std::string& kind,
                          const std::string& vendor, int priority, const nb::dict& caps,
                          const std::vector<std::pair<uint32_t, std::string>>& reads,
                          uint32_t flags, const nb::object& available,
                          std::optional<bool> default_enable, bool stream,
                          const std::vector<Hint>& hints, const std::string& build) {
  const std::string op = id.substr(0, id.find('/'));
  const auto kernel = std::make_shared<PythonKernel>(
      held.runtime->op(op).value(), Reference::borrow(function.ptr()),
      Reference::borrow(verifier.is_none() ? nullptr : verifier.ptr()),
      Reference::borrow(available.is_none() ? nullptr : available.ptr()), stream);
  Implementation implementation{.id = id, .kind = kind_of(kind), .vendor = vendor};
  implementation.priority = priority;
  implementation.caps = caps_of(caps);
  implementation.flags = flags;
  implementation.default_enable = default_enable;
  implementation.stream = stream;
  implementation.hints = hints;
  implementation.build_id = build;
  implementation.run = [kernel](CallFrame& call) { return kernel->run(call); };
  if (!verifier.is_none()) {
    implementation.verify = [kernel](const Facts& facts) { return kernel->verify(facts); };
    implementation.verify_reads.emplace();
    for (const auto& [fact, name] : reads) implementation.verify_reads->push_back({fact, name});
  }
  if (!available.is_none()) {
    implementation.available = [kernel] { return kernel->why_unavailable(); };
  }
  return {std::move(implementation)};
}

/// Registers a function as an implementation of an opaque operator. Its calls go through
/// dispatch_call.hpp; `run` is for other callers, which cannot pass its arguments.
Registration implement_function(HeldRuntime& held, const std::string& id, const std::string& kind,
                                const std::string& vendor, int priority, const nb::dict& caps,
                                uint32_t flags, std::optional<bool> default_enable) {
  Implementation implementation{.id = id, .kind = kind_of(kind), .vendor = vendor};
  implementation.priority = priority;
  implementation.caps = caps_of(caps);
  implementation.caps.device(0);  // tensors of any device
  implementation.flags = flags | OPMUX_IMPL_VERIFY_RECORDED;
  implementation.default_enable = default_enable;
  implementation.run = [](CallFrame& call) {
    return call.end(Outcome::declined, "only calls of the function run it");
  };
  implementation.verify = [id](const Facts& facts) { return ask_verifier(id, facts); };
  return held.runtime->implement(implementation).value();
}

/// Registers an implementation and keeps the registration with the runtime.
void implement(HeldRuntime& held, const ImplementationDraft& own) {
  Registration made = held.runtime->implement(own.implementation).value();
  held.registrations.insert_or_assign(own.implementation.id, std::move(made));
}

/// Registers all implementations or none, and keeps one registration of each with the runtime.
void implement_together(HeldRuntime& held, const nb::list& drafts) {
  std::vector<Implementation> all;
  for (const nb::handle each : drafts) {
    all.push_back(nb::cast<const ImplementationDraft&>(each).implementation);
  }
  std::vector<Registration> made = held.runtime->implement(all).value().split();
  for (size_t i = 0; i < all.size(); ++i) {
    held.registrations.insert_or_assign(all[i].id, std::move(made[i]));
  }
}

/// A C++ implementation that does nothing, to measure the cost of a call without a kernel.
Registration implement_nothing(HeldRuntime& held, const std::string& id) {
  Implementation implementation{.id = id, .kind = Kind::default_};
  implementation.kernel.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; };
  return held.runtime->implement(implementation).value();
}

/// Never destroyed, because the interpreter is gone when static destructors run.
nb::object& adopt_hook() {
  static auto* const hook = new nb::object;
  return *hook;
}

}  // namespace

Reference borrowed_tensor(const TensorView& view) {
  try {
    nb::object made = nb::cast(BorrowedTensor{view});
    if (!adopt_hook().is_valid()) return Reference::steal(made.release().ptr());
    return call_with(adopt_hook().ptr(), made.ptr());
  } catch (nb::python_error& error) {
    error.restore();
    return {};
  }
}

Reference facts_view(const Facts& facts) {
  return Reference::steal(nb::cast(FactsView{&facts}).release().ptr());
}

void end_facts_view(const Reference& view) {
  if (view) nb::inst_ptr<FactsView>(view.get())->facts = nullptr;
}

void bind_implementations(nb::module_& module) {
  nb::class_<FactsView>(module, "FactsView").def("get", &get_fact);
  nb::class_<BorrowedTensor>(module, "BorrowedTensor")
      .def("__dlpack__", &capsule_of)
      .def("__dlpack_device__", [](const BorrowedTensor& own) {
        return std::make_pair(own.view.device().type, own.view.device().id);
      });
  nb::class_<Registration>(module, "Registration", "The registration of an implementation.")
      .def(
          "withdraw", [](Registration& own) { withdraw(std::move(own)); },
          "Removes the implementation; returns when no call is running it.")
      .def("keep", &Registration::keep,
           "Keeps the implementation registered as long as the runtime lives.");
  const nb::class_<ImplementationDraft> draft_type(module, "ImplementationDraft",
                                                   "An implementation that is not registered yet.");
  module.def("draft", &draft, nb::arg("runtime"), nb::arg("id"), nb::arg("function"),
             nb::arg("verifier").none(), nb::arg("kind"), nb::arg("vendor"), nb::arg("priority"),
             nb::arg("caps"), nb::arg("reads"), nb::arg("flags"), nb::arg("available") = nb::none(),
             nb::arg("default_enable") = nb::none(), nb::arg("stream") = false,
             nb::arg("hints") = std::vector<Hint>(), nb::arg("build") = "", nb::keep_alive<0, 1>());
  module.def("check_caps", [](const nb::dict& caps) { static_cast<void>(caps_of(caps)); });
  module.def("implement", &implement, nb::arg("runtime"), nb::arg("draft"));
  module.def("implement_together", &implement_together, nb::arg("runtime"), nb::arg("drafts"));
  module.def("withdraw", &withdraw_kept, nb::arg("runtime"), nb::arg("id"));
  module.def("implement_function", &implement_function, nb::arg("runtime"), nb::arg("id"),
             nb::arg("kind"), nb::arg("vendor"), nb::arg("priority"), nb::arg("caps"),
             nb::arg("flags"), nb::arg("default_enable").none(), nb::keep_alive<0, 1>());
  module.def("implement_nothing", &implement_nothing, nb::arg("runtime"), nb::arg("id"),
             nb::keep_alive<0, 1>());
  module.def(
      "call_watched",
      [](nb::handle function, const nb::tuple& args, const nb::dict& kwargs, nb::handle note) {
        PyObject* const result = call_watched(function.ptr(), args.ptr(), kwargs.ptr(), note.ptr());
        if (result == nullptr) nb::raise_python_error();
        return nb::steal(result);
      },
      nb::arg("function"), nb::arg("args"), nb::arg("kwargs"), nb::arg("note"));
  module.def(
      "watch_reads_of",
      [](const nb::tuple& codes, nb::handle torch) {
        watch_reads_of(codes.ptr(), torch.is_none() ? nullptr : torch.ptr());
      },
      nb::arg("environ_codes"), nb::arg("torch").none());
  module.def("set_adopt_hook", [](nb::object hook) { adopt_hook() = std::move(hook); });
}

}  // namespace opmux::python
