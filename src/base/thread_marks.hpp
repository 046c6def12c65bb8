#pragma once

namespace opmux::base {

/// The health::MarkPlaces that say which implementation the calling thread is running; null before
/// the thread's first call. A thread pool lends the caller's marks to its threads while they work
/// for the caller, so that a crash is attributed to the right implementation.
extern thread_local constinit const void* thread_marks __attribute__((tls_model("initial-exec")));

/// Uses the marks of another thread for the lifetime of this object.
class LentMarks {
 public:
  explicit LentMarks(const void* marks) : before_(thread_marks) { thread_marks = marks; }
  ~LentMarks() { thread_marks = before_; }
  LentMarks(const LentMarks&) = delete;
  LentMarks& operator=(const LentMarks&) = delete;

 private:
  const void* before_;
};

}  // namespace opmux::base
