#include "base/openmp.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "base/process.hpp"

namespace opmux::base {
namespace {

int find_gomp(dl_phdr_info* info, size_t, void* path) {
  const std::string_view name = info->dlpi_name;
  const size_t file = name.rfind('/') + 1;  // 0 if there is no folder
  if (!name.substr(file).starts_with("libgomp")) return 0;
  *static_cast<std::string*>(path) = name;
  return 1;
}

template <class Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

const OpenMp* find_functions() {
  std::string path;
  if (dl_iterate_phdr(find_gomp, &path) == 0) return nullptr;
  // Pin the library, because the function pointers must stay valid.
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library == nullptr) return nullptr;
  static OpenMp found;
  const bool all = find_function(library, "GOMP_parallel", found.parallel) &&
                   find_function(library, "omp_get_max_threads", found.max_threads);
  return all ? &found : nullptr;
}

}  // namespace

const OpenMp* loaded_openmp() {
  constexpr uint64_t kLoadedIn = 1;  // the number of the process that loaded this library
  if (process_number() != kLoadedIn) return nullptr;
  // Cache only success, because the process may load OpenMP later.
  static std::atomic<const OpenMp*> found{nullptr};
  if (const OpenMp* known = found.load(std::memory_order_acquire)) return known;
  static ForkMutex mutex;
  const std::lock_guard lock(mutex);
  if (found.load(std::memory_order_acquire) == nullptr) {
    found.store(find_functions(), std::memory_order_release);
  }
  return found.load(std::memory_order_acquire);
}

}  // namespace opmux::base
