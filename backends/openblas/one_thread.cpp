#include "backends/openblas/one_thread.hpp"

#include <cblas.h>

#include <mutex>

// Defined only if OpenBLAS was built with OpenMP.
extern "C" {
[[gnu::weak]] int omp_get_max_threads();
[[gnu::weak]] void omp_set_num_threads(int);
}

namespace opmux::backends::openblas {
namespace {

std::mutex mutex;
// Serializes calls to an OpenBLAS that was built without threads.
std::recursive_mutex only_caller;
int users = 0;
int found = 1;

void enter() {
  const std::lock_guard lock(mutex);
  if (users++ > 0) return;
  found = openblas_get_num_threads();
  if (found != 1) openblas_set_num_threads(1);
}

void leave() {
  const std::lock_guard lock(mutex);
  if (--users > 0 || found == 1) return;
  if (openblas_get_num_threads() == 1) openblas_set_num_threads(found);
}

}  // namespace

OneThread::OneThread() {
  const int kind = openblas_get_parallel();
  if (kind == OPENBLAS_THREAD) {
    enter();
  } else if (kind == OPENBLAS_OPENMP && omp_get_max_threads && omp_set_num_threads) {
    openmp_threads_ = omp_get_max_threads();
    if (openmp_threads_ > 1) omp_set_num_threads(1);
  } else if (kind == OPENBLAS_SEQUENTIAL) {
    only_caller.lock();
  }
}

OneThread::~OneThread() {
  const int kind = openblas_get_parallel();
  if (kind == OPENBLAS_THREAD) leave();
  if (kind == OPENBLAS_SEQUENTIAL) only_caller.unlock();
  if (openmp_threads_ > 1) omp_set_num_threads(openmp_threads_);
}

bool takes_several_callers() { return openblas_get_parallel() != OPENBLAS_SEQUENTIAL; }

}  // namespace opmux::backends::openblas
