#pragma once

#include "reference.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/opaque_call.hpp>
#include <opmux/runtime.hpp>

#include "argument_facts.hpp"
#include "opaque_arguments.hpp"

namespace opmux::python {

/// An implementation of a dispatchable function.
struct DispatchTarget {
  Reference function;
  std::string id;
  bool body = false;   ///< the function's body: its result and exceptions are those of the call
  uint64_t calls = 0;  ///< number of calls, also of those that failed
};

/// The cached decisions of a dispatchable function, most recently used first. Used with the GIL
/// held.
class DecisionCache {
 public:
  static constexpr size_t kEntries = 8;
  static constexpr size_t kMostArguments = 64;

  /// A bit mask of the arguments that are None.
  static uint64_t absent(PyObject* const* args, size_t count) {
    uint64_t bits = 0;
    for (size_t i = 0; i < count; ++i) bits |= uint64_t{args[i] == Py_None} << i;
    return bits;
  }

  struct Entry {
    uint64_t context = 0;   ///< scope and ambient facts
    uint64_t compared = 0;  ///< bits of the context that the decision depends on
    Py_ssize_t count = 0;
    Reference keywords = {};  ///< tuple of names, or null
    uint64_t absent = 0;      ///< bit mask of the arguments that are None
    std::vector<ArgumentFacts> facts = {};
    DispatchTarget* target = nullptr;  ///< the winner
    std::shared_ptr<const dispatch::OpaqueDecision> decision = {};
  };
  /// Returns the decision cached for arguments like these; null if there is none. The pointer is
  /// valid until Python code runs.
  const Entry* find(uint64_t context, const GivenArguments& given) {
    const Reading reading(*this);
    for (size_t i = 0; i < used_ && !stale_; ++i) {
      Entry* const entry = order_[i];
      if (fits(*entry, context, given)) return stale_ ? nullptr : use(*entry, i);
    }
    return nullptr;
  }
  /// Does nothing while find() runs, which calls Python code that may make further calls.
  void remember(Entry entry);
  /// Takes effect when find() returns, if it runs.
  void clear();
  size_t size() const { return stale_ ? 0 : used_; }

 private:
  static bool fits(const Entry& entry, uint64_t context, const GivenArguments& given);
  /// Moves an entry to the front. `i` is its position unless a call inside find() has moved it.
  const Entry* use(Entry& entry, size_t i) {
    while (order_[i] != &entry) i = (i + 1) % used_;
    for (; i > 0; --i) order_[i] = order_[i - 1];
    order_[0] = &entry;
    return &entry;
  }
  /// Keeps the entries as they are while find() compares them.
  class Reading {
   public:
    explicit Reading(DecisionCache& own) : own_(own) { ++own_.reading_; }
    ~Reading() {
      if (--own_.reading_ == 0 && own_.stale_) own_.clear();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    DecisionCache& own_;
  };

  std::array<Entry, kEntries> entries_;
  std::array<Entry*, kEntries> order_{};
  size_t used_ = 0;
  int reading_ = 0;     ///< number of calls of find() that run
  bool stale_ = false;  ///< to be cleared when they return
};

/// The state of a dispatchable function.
struct Dispatcher {
  /// Whether the cached decisions are still valid. If the runtime changed, or the engine says that
  /// decisions about this function may differ, clears the cache and returns false.
  bool is_current();
  void attach(PyObject* object, const Runtime& to, const Operator& op,
              std::vector<SeenParameter> parameters);
  DispatchTarget* find(std::string_view id);

  DecisionCache cache;
  Reference held;  ///< keeps the runtime object alive
  const Runtime* runtime = nullptr;
  uint64_t forgotten = 0;
  std::string name;
  dispatch::OperatorSlot* slot = nullptr;
  const std::atomic<uint64_t>* epoch = nullptr;  ///< of the operator
  uint64_t decided_in = 0;                       ///< epoch of the cached decisions
  std::vector<SeenParameter> seen;               ///< the arguments of the operator
  DispatchTarget* body = nullptr;                ///< set if opmux is disabled: every call runs it
  DispatchTarget* last = nullptr;
  std::vector<std::unique_ptr<DispatchTarget>> targets;  ///< includes withdrawn ones
  Reference slow;             ///< (args, kwargs): makes a call that has no cached decision
  bool not_compiled = false;  ///< torch.compile is disabled for this function
};

/// The dispatcher of a dispatchable function; null if the object has another type.
Dispatcher* dispatcher_of(PyObject* object);

/// Creates the type of dispatchable functions; null with an exception set on failure.
PyTypeObject* make_dispatcher_type();

/// Invalidates the cached decisions of all dispatchable functions, because the default runtime was
/// replaced.
void forget_decisions();

}  // namespace opmux::python
