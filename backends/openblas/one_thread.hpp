// Keeps OpenBLAS on the thread that calls it.
#pragma once

namespace opmux::backends::openblas {

// While one lives, OpenBLAS starts no other thread for a call of this one. Work is divided by the
// operators, over the threads that the host lends, so `max_threads` holds whatever OpenBLAS is set
// to, and the division, and with it every bit, does not depend on how many they are.
//
// How OpenBLAS is told depends on how it was built:
// - with threads of its own the number is one for the process. The first that needs it sets it to
//   1, the last puts back what the first found, unless somebody else set it meanwhile. Calls that
//   the program makes to OpenBLAS itself at that moment run on one thread too; nothing else of them
//   changes.
// - with OpenMP it is the calling thread's own number of OpenMP threads, put back afterwards.
// - without threads it cannot stand two callers at a time: one waits for the other.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int openmp_threads_ = 0;
};

// Whether several threads may call OpenBLAS at the same moment.
bool takes_several_callers();

}  // namespace opmux::backends::openblas
