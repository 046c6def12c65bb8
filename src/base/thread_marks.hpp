#pragma once

namespace opmux::base {

/// What tells what the calling thread is inside of (health::MarkPlaces); null if it was never
/// inside of anything. A pool lends the caller's to its threads for as long as they help.
extern thread_local constinit const void* thread_marks __attribute__((tls_model("initial-exec")));

/// The marks of another thread, for as long as this lives.
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
