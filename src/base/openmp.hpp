#pragma once

namespace opmux::base {

/// The OpenMP runtime that the process has anyway, by its functions. It is found among what is
/// loaded and never loaded: two of them in one process would have twice the threads.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags);
  int (*max_threads)();
};

/// Null if the process has none now or was forked. GNU's (libgomp) is known, whatever its suffix.
const OpenMp* loaded_openmp();

}  // namespace opmux::base
