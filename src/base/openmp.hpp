#pragma once

namespace opmux::base {

/// Functions of the OpenMP runtime that the process has already loaded. opmux never loads one,
/// because two runtimes in one process would have twice the threads.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags);
  int (*max_threads)();
};

/// Returns the loaded OpenMP runtime. Null if none is loaded or the process was forked. Only GNU's
/// runtime is supported: any loaded library whose file name starts with "libgomp".
const OpenMp* loaded_openmp();

}  // namespace opmux::base
