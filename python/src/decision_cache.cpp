#include "dispatcher.hpp"

namespace opmux::python {
namespace {

bool same_names(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    PyObject *const x = PyTuple_GET_ITEM(a, i), *const y = PyTuple_GET_ITEM(b, i);
    if (x != y && PyUnicode_Compare(x, y) != 0) return false;
  }
  return true;
}

}  // namespace

bool DecisionCache::fits(const Entry& entry, uint64_t context, const GivenArguments& given) {
  if (((entry.context ^ context) & entry.compared) != 0 || entry.count != given.count) return false;
  if (!same_names(entry.keywords.get(), given.keywords)) return false;
  if (absent(given.objects, static_cast<size_t>(given.all())) != entry.absent) return false;
  for (const ArgumentFacts& facts : entry.facts) {
    if (!facts.agree(given.objects)) return false;
  }
  return true;
}

void DecisionCache::remember(Entry entry) {
  if (reading_ > 0) return;
  if (used_ == 0) {
    for (size_t i = 0; i < kEntries; ++i) order_[i] = &entries_[i];
  }
  const size_t at = used_ < kEntries ? used_++ : kEntries - 1;
  const Entry forgotten = std::exchange(*order_[at], std::move(entry));
  use(*order_[at], at);
}

void DecisionCache::clear() {
  stale_ = reading_ > 0;
  if (stale_) return;
  std::array<Entry, kEntries> forgotten;  // destroyed last: destructors may call back into Python
  std::swap(forgotten, entries_);
  used_ = 0;
}

}  // namespace opmux::python
