#include "dispatch_call.hpp"

#include <optional>
#include <stdexcept>

#include <opmux/implementation.hpp>

#include "borrowed.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "python_kernel.hpp"
#include "report.hpp"

namespace opmux::python {
namespace {

using dispatch::OpaqueDecision;
using dispatch::OpaqueOutcome;

/// The object that answers for the verifiers of the innermost decision of this thread.
thread_local constinit PyObject* asked_now __attribute__((tls_model("initial-exec"))) = nullptr;

class Asking {
 public:
  explicit Asking(PyObject* asked) : outer_(std::exchange(asked_now, asked)) {}
  ~Asking() { asked_now = outer_; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  PyObject* outer_;
};

/// Runs the functions of one call, and keeps the result of the last one.
class FunctionRunner final : public dispatch::OpaqueRunner {
 public:
  FunctionRunner(Dispatcher& own, const GivenArguments& given) : own_(own), given_(given) {}

  OpaqueOutcome run(const std::string& id) override {
    DispatchTarget* const target = own_.find(id);
    if (target == nullptr) return {Code::declined, "its function was removed"};
    own_.last = target;
    ++target->calls;
    const Reference function = target->function;
    return end(*target, guarded([&] {
      return PyObject_Vectorcall(function.get(), given_.objects, static_cast<size_t>(given_.count),
                                 given_.keywords);
    }));
  }

  bool returned(std::vector<TensorView>& tensors) override {
    return read_.read_result(result_.get(), tensors);
  }

  bool run_again(const std::string& id, std::vector<TensorView>& tensors) override {
    const DispatchTarget* const target = own_.find(id);
    if (target == nullptr) return false;
    const Reference function = target->function;
    again_ = Reference::steal(guarded([&] {
      return PyObject_Vectorcall(function.get(), given_.objects, static_cast<size_t>(given_.count),
                                 given_.keywords);
    }));
    if (again_) return read_.read_result(again_.get(), tensors);
    // The result of the call is known, so only an interrupt of the program remains to be raised.
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) PyErr_SetInterrupt();
    PyErr_Clear();
    return false;
  }

  /// The outcome of a function that returned `result`, or raised if that is null.
  OpaqueOutcome end(const DispatchTarget& target, PyObject* result) {
    result_ = Reference::steal(result);
    raised_ = {};
    if (result == Py_NotImplemented && !target.body) {
      result_ = {};
      return {Code::declined, "returned NotImplemented"};
    }
    if (result != nullptr) return {};
    Caught caught = catch_exception();
    raised_ = std::move(caught.exception);
    if (PyErr_GivenExceptionMatches(raised_.get(), PyExc_Exception) == 0) {
      passes_ = true;
      return {Code::declined, std::move(caught.text), true};
    }
    // The body is the function that the program wrote, so the program gets its exceptions.
    passes_ = target.body;
    if (target.body) return {Code::failed, std::move(caught.text)};
    const bool own_word = caught.code == Code::declined || caught.code == Code::resource ||
                          caught.code == Code::device_lost;
    return {own_word ? caught.code : Code::failed, std::move(caught.text)};
  }

  /// The return value of the call; null with an exception set if it failed.
  PyObject* finish(const Status& status) {
    if (status.ok()) return result_.release();
    if (passes_ && raised_) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised_.get())), raised_.get());
    } else {
      raise(status, raised_.get());
    }
    return nullptr;
  }

 private:
  Dispatcher& own_;
  const GivenArguments& given_;
  Reference result_, raised_;
  Reference again_;  ///< result of the body, for a comparison
  ReadTensors read_;
  bool passes_ = false;  ///< the exception of the function is that of the call
};

/// Runs a decision, with a report if `around` collects reports.
PyObject* run(const Dispatcher& own, const OpaqueDecision& decision,
              const OpaqueArguments& arguments, FunctionRunner& runner, const OpaqueOutcome* failed,
              const CurrentScope& around, bool cached) {
  const bool reporting = around.content != nullptr && around.content->reporting;
  CallReport report;
  const Status status =
      dispatch::run_opaque(*own.slot, decision, arguments.site(), arguments.values(), runner,
                           failed, reporting ? &report : nullptr);
  PyObject* const result = runner.finish(status);
  if (!reporting) return result;
  report.cached = cached;
  return hand_over(own.name, report, *around.content, result);
}

CurrentScope scope_around(const Dispatcher& own) {
  return scopes_alive == 0 ? CurrentScope() : current_scope(*own.runtime);
}

/// The kind under which the binding compares a fact of the engine.
FactKind kind_of(uint32_t fact) {
  switch (fact) {
    case OPMUX_FACT_DTYPE: return FactKind::dtype;
    case OPMUX_FACT_CONTIGUOUS: return FactKind::contiguous;
    case OPMUX_FACT_DEVICE: return FactKind::device;
    default: return FactKind::rank;  // a tensor is present if it has a rank that can be described
  }
}

/// Collects the facts that a decision depends on, with their values in a call.
class FactsOfCall {
 public:
  explicit FactsOfCall(const GivenArguments& given) : given_(given) {}

  bool ask(uint32_t argument, const std::vector<uint32_t>& path, FactKind kind, int32_t index,
           PyObject* name) {
    if (argument >= static_cast<size_t>(given_.all())) return false;
    ArgumentFacts* own = nullptr;
    for (ArgumentFacts& one : facts) {
      if (one.argument() == argument && one.path() == path) own = &one;
    }
    if (own == nullptr) own = &facts.emplace_back(argument, path);
    return own->ask(given_.objects, kind, index, name);
  }

  /// Adds what the verifiers read: a list of tuples (argument, path, kind, index, name).
  bool ask_all(PyObject* questions) {
    if (PyList_Check(questions) == 0) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(questions); ++i) {
      unsigned argument = 0;
      PyObject *places = nullptr, *name = nullptr;
      int kind = 0, index = 0;
      if (PyArg_ParseTuple(PyList_GET_ITEM(questions, i), "IO!iiO", &argument, &PyTuple_Type,
                           &places, &kind, &index, &name) == 0) {
        return false;
      }
      std::vector<uint32_t> path;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(places); ++k) {
        path.push_back(static_cast<uint32_t>(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(places, k))));
      }
      if (kind < 0 || kind >= kFactKinds) return false;
      if (!ask(argument, path, static_cast<FactKind>(kind), index, name)) return false;
    }
    return true;
  }

  /// Adds a fact of the engine about an argument of the operator.
  bool ask(const Dispatcher& own, dispatch::OpaqueFact fact, const OpaqueArguments& arguments) {
    const Py_ssize_t at = given_.index_of(own.seen[fact.argument]);
    if (at < 0) return true;  // the number and the names of the arguments are compared
    const auto index = static_cast<uint32_t>(at);
    if (!ask(index, {}, FactKind::type, 0, nullptr)) return false;
    return !arguments.is_tensor(fact.argument) || ask(index, {}, kind_of(fact.kind), 0, nullptr);
  }

  std::vector<ArgumentFacts> facts;

 private:
  const GivenArguments& given_;
};

/// Caches a decision, unless a fact that it depends on cannot be compared.
void remember(Dispatcher& own, const OpaqueDecision& decision, uint64_t context,
              const GivenArguments& given, const OpaqueArguments& arguments, PyObject* asked) {
  if (!decision.cacheable || given.all() > static_cast<Py_ssize_t>(DecisionCache::kMostArguments))
    return;
  DispatchTarget* const target = own.find(decision.first);
  if (target == nullptr) return;
  const Reference questions =
      Reference::steal(PyObject_CallMethod(asked, "questions", "s", decision.first.c_str()));
  FactsOfCall collected(given);
  bool complete = questions && collected.ask_all(questions.get());
  for (const dispatch::OpaqueFact& fact : decision.facts) {
    complete = complete && collected.ask(own, fact, arguments);
  }
  PyErr_Clear();
  if (!complete || !decision.is_current()) return;
  DecisionCache::Entry entry{context, kScopeBits | decision.ambient_read, given.count,
                             Reference::borrow(given.keywords)};
  entry.absent = DecisionCache::absent(given.objects, static_cast<size_t>(given.all()));
  entry.facts = std::move(collected.facts);
  entry.target = target;
  entry.decision = std::make_shared<const OpaqueDecision>(decision);
  if (!own.is_current()) own.decided_in = decision.decided_in;
  own.cache.remember(std::move(entry));
}

}  // namespace

PyObject* run_by_engine(Dispatcher& own, const OpaqueDecision& decision,
                        const GivenArguments& given) {
  const OpaqueArguments arguments(own.seen, given);
  FunctionRunner runner(own, given);
  return run(own, decision, arguments, runner, nullptr, {}, true);
}

PyObject* end_by_engine(Dispatcher& own, const OpaqueDecision& decision, DispatchTarget& target,
                        const GivenArguments& given, PyObject* result) {
  FunctionRunner runner(own, given);
  const OpaqueOutcome outcome = runner.end(target, result);
  if (outcome.code == Code::ok) {  // the body may return NotImplemented
    count_call(decision);
    return runner.finish({});
  }
  if (outcome.stopped) return runner.finish({outcome.code, "call.stopped", outcome.text});
  const OpaqueArguments arguments(own.seen, given);
  return run(own, decision, arguments, runner, &outcome, {}, true);
}

PyObject* decide_and_run(Dispatcher& own, const GivenArguments& given, PyObject* asked) {
  const CurrentScope around = scope_around(own);
  const uint64_t context = context_of(around);
  const DecisionCache::Entry* const entry =
      own.is_current() ? own.cache.find(context, given) : nullptr;
  std::shared_ptr<const OpaqueDecision> decision;
  if (entry != nullptr) decision = entry->decision;
  const bool cached = decision != nullptr;
  const OpaqueArguments arguments(own.seen, given);
  if (!cached) {
    const Asking asking(asked);
    std::optional<Surroundings> entered(*own.runtime);
    const uint32_t tag = around.content == nullptr ? 0 : around.content->options.tag.number;
    auto made = dispatch::decide_opaque(*own.slot, arguments.site(), arguments.values(), tag);
    entered.reset();
    if (!made) {
      raise(made.error());
      return nullptr;
    }
    decision = std::make_shared<const OpaqueDecision>(std::move(*made));
    remember(own, *decision, context, given, arguments, asked);
  }
  FunctionRunner runner(own, given);
  return run(own, *decision, arguments, runner, nullptr, around, cached);
}

Explanation explain_call(const Dispatcher& own, const GivenArguments& given, PyObject* asked) {
  const OpaqueArguments arguments(own.seen, given);
  const Asking asking(asked);
  const Surroundings entered(*own.runtime);
  return detail::explain(*own.slot, arguments.site(), arguments.values());
}

std::string ask_verifier(const std::string& id, const Facts& facts) {
  if (asked_now == nullptr) return "";
  const WithGil gil;
  if (!gil) throw std::runtime_error(kInterpreterEnds);
  const Reference view = facts_view(facts);
  const Reference answer = view ? Reference::steal(guarded([&] {
    return PyObject_CallMethod(asked_now, "verify", "sO", id.c_str(), view.get());
  }))
                                : Reference();
  end_facts_view(view);
  return refusal_in(answer, "the verifier");
}

}  // namespace opmux::python
