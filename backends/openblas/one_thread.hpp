// Keeps OpenBLAS on the calling thread.
#pragma once

namespace opmux::backends::openblas {

// While an instance exists, OpenBLAS starts no threads for calls of this thread. The operators
// divide the work over the threads that the host lends, so `max_threads` holds whatever OpenBLAS is
// configured to, and results do not depend on the number of threads.
//
// The mechanism depends on how OpenBLAS was built:
// - With its internal thread pool, the number of threads is a process-wide setting. The first
//   instance sets it to 1 and the last one restores the previous value, unless other code changed
//   it meanwhile. OpenBLAS calls that the program makes during that time also run on one thread;
//   nothing else changes for them.
// - With OpenMP, it is the calling thread's OpenMP thread limit, which is restored afterwards.
// - Without threads, OpenBLAS is not safe for concurrent callers, so callers wait for each other.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int openmp_threads_ = 0;
};

// Whether several threads may call OpenBLAS at the same time.
bool takes_several_callers();

}  // namespace opmux::backends::openblas
