#include "plugin/open/loaded_plugin.hpp"

#include <exception>
#include <map>
#include <optional>

#include "base/locks.hpp"
#include "base/status.hpp"
#include "base/system/process.hpp"
#include "plugin/host.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

/// The lifetime of an initialised plugin: begin() calls init, the destructor calls shutdown.
class Life {
 public:
  explicit Life(std::shared_ptr<void> code) : code_(std::move(code)) {}
  Status begin(const opmux_plugin& functions);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

 private:
  std::shared_ptr<void> code_;
  void* user_data_ = nullptr;
  void (*shutdown_)(void*) = nullptr;
};

Status Life::begin(const opmux_plugin& functions) {
  if (functions.init != nullptr) {
    const base::ThreadStateGuard guard;
    base::ErrorSink error;
    try {
      const int32_t outcome = functions.init(functions.user_data, &process_host(), error.c());
      const std::string text = error.text();
      if (outcome != OPMUX_OK) {
        return {Code::unavailable, "plugin.init",
                base::concat("its init function returned outcome ", outcome,
                             text.empty() ? "" : ": ", text)};
      }
    } catch (const std::exception& thrown) {
      return malformed("threw", base::concat("its init function threw: ", thrown.what()));
    } catch (...) {
      return malformed("threw", "its init function threw an object that is not a std::exception");
    }
  }
  user_data_ = functions.user_data;
  shutdown_ = functions.shutdown;
  return {};
}

Life::~Life() {
  if (shutdown_ == nullptr) return;
  const base::ThreadStateGuard guard;
  try {
    shutdown_(user_data_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a shutdown has no way to report failure
  }
}

using Lives = std::map<opmux_plugin_query_fn, std::weak_ptr<Life>>;

base::Published<Lives>& lives() {
  static constinit base::Lazy<base::Published<Lives>> all;
  return all.get();
}

Result<ReadyPlugin> read(opmux_plugin_query_fn query, const std::string& build_id,
                         const std::shared_ptr<Life>& life) {
  const base::ThreadStateGuard guard;
  const Result<opmux_plugin> described = query_plugin(query, process_host());
  if (!described) return described.error();
  Result<PluginContents> contents = read_plugin(*described, life, build_id);
  if (!contents) return contents.error();
  return ReadyPlugin{*std::move(contents), life};
}

}  // namespace

Result<ReadyPlugin> make_ready(opmux_plugin_query_fn query, const std::string& build_id,
                               std::shared_ptr<void> code,
                               const std::function<void(crash::Phase)>& enter) {
  std::optional<Result<ReadyPlugin>> ready;
  // Other threads that load the same plugin wait here until it is initialised.
  lives().update([&](Lives& all) {
    std::shared_ptr<Life> life = all[query].lock();
    const bool alive = life != nullptr;
    if (!alive) life = std::make_shared<Life>(std::move(code));
    if (enter) enter(crash::Phase::query);
    ready = read(query, build_id, life);
    if (!*ready || alive) return false;
    if (enter) enter(crash::Phase::init);
    if (Status bad = life->begin((*ready)->contents.functions); !bad.ok()) {
      ready = std::move(bad);
      return false;
    }
    all[query] = life;
    return true;
  });
  return *std::move(ready);
}

}  // namespace opmux::plugin
