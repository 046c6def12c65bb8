#include "base/thread_marks.hpp"

namespace opmux::base {

thread_local constinit const void* thread_marks = nullptr;

}  // namespace opmux::base
