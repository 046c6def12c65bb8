#include "plugin/opened_file.hpp"

#include <dlfcn.h>

#include <map>
#include <vector>

#include "base/fork_guarded.hpp"
#include "base/lazy.hpp"
#include "base/thread_state.hpp"
#include "plugin/sealed_copy.hpp"

namespace opmux::plugin {
namespace {

struct Open {
  opmux_plugin_query_fn query = nullptr;
  std::string build_id;
  std::weak_ptr<void> code;
};

struct Opened {
  std::map<std::string, Open> by_digest;
  std::vector<std::shared_ptr<void>> kept;
};

base::ForkGuarded<Opened>& opened() {
  static constinit base::Lazy<base::ForkGuarded<Opened>> all;
  return all.get();
}

void close_code(void* handle) {
  const base::ThreadStateGuard guard;
  dlclose(handle);
}

Result<OpenedFile> open_now(const CheckedFile& file, base::Descriptor sealed) {
  const base::ThreadStateGuard guard;
  const bool by_path = !sealed;
  const int checked = by_path ? file.descriptor.get() : sealed.get();
  const std::string path = by_path ? file.path : path_of_descriptor(sealed.get());
  Result<Library> library = open_library(path, checked);
  // A number that is used again would make the system's loader return the library that had it.
  (void)sealed.release();
  if (!library) return library.error();
  return OpenedFile{library->query, std::move(library->build_id),
                    std::shared_ptr<void>(library->handle, close_code)};
}

}  // namespace

Result<OpenedFile> open_once(const CheckedFile& file, base::Descriptor sealed) {
  return opened().with([&](Opened& all) -> Result<OpenedFile> {
    if (!file.digest.empty()) {
      const auto known = all.by_digest.find(file.digest);
      if (known != all.by_digest.end()) {
        if (auto code = known->second.code.lock()) {
          return OpenedFile{known->second.query, known->second.build_id, std::move(code)};
        }
      }
    }
    Result<OpenedFile> fresh = open_now(file, std::move(sealed));
    if (fresh && !file.digest.empty()) {
      all.by_digest[file.digest] = {fresh->query, fresh->build_id, fresh->code};
    }
    return fresh;
  });
}

void keep_for_ever(std::shared_ptr<void> code) {
  opened().with([&](Opened& all) { all.kept.push_back(std::move(code)); });
}

}  // namespace opmux::plugin
