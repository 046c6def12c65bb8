#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/text.hpp"
#include "cli/migrate/layerzero.hpp"

namespace opmux::cli::migrate {
namespace {

void take_mode(const Setting& setting, Migration& migration) {
  const std::string mode = lowered(setting.value);
  migration.set_variable(setting, "OPMUX_MODE", mode,
                         mode == "static" ? "with a lockfile that `opmux lock` writes" : "");
}

void take_config_path(const Setting& setting, Migration& migration) {
  migration.set_variable(setting, "OPMUX_CONFIG", setting.value, "the path of the migrated policy");
}

void take_fallback(const Setting& setting, Migration& migration) {
  migration.set_default(setting, "strict", setting.value == "false");
}

void take_threshold(const Setting& setting, Migration& migration) {
  migration.set_breaker(
      setting, "consecutive_failures",
      std::max(1, static_cast<int>(std::strtol(setting.value.c_str(), nullptr, 10))));
}

void take_recovery(const Setting& setting, Migration& migration) {
  const auto milliseconds =
      static_cast<int64_t>(std::strtod(setting.value.c_str(), nullptr) * 1000);
  migration.set_breaker(setting, "open_for", base::concat(milliseconds, "ms"));
}

void take_transforms(const Setting& setting, Migration& migration) {
  migration.set_default(setting, "transforms",
                        Json::array({setting.value == "false" ? "none" : "contiguous"}));
}

void take_breaker_switch(const Setting& setting, Migration& migration) {
  if (setting.value == "true") {
    return migration.note(setting, Place::policy, "breakers are always on");
  }
  migration.note(setting, Place::none,
                 "breakers cannot be turned off; breaker.consecutive_failures goes up to 1000");
}

constexpr char kPriority[] = "the rank of rules without a priority";
constexpr char kOrder[] = "the other accepted candidates follow in order of their score";
constexpr char kCache[] =
    "choices are kept per class of calls, without a size or an age; a changed policy replaces them";
constexpr char kNoLimit[] =
    "every accepted candidate is tried, without a limit of attempts or time";
constexpr char kWatch[] = "a watched file is read when the system reports a change";
constexpr char kAlways[] = "always so in opmux";
constexpr char kGraph[] = "a program tells opmux of a capture by the ambient fact `capturing`";
constexpr char kSync[] = "a call never waits for a device; the stream of the call orders it";
constexpr char kTimes[] = "calls are counted, and no call reads a clock";
constexpr char kMap[] = "OPMUX_LOCKFILE, which `opmux lock` writes";
constexpr char kWarm[] = "`bind` and `decide` prepare a call before it runs; nothing is compiled";
constexpr char kCapabilities[] = "implementations declare capabilities when they are registered";

struct Option {
  std::string_view name;
  Take take;
};

constexpr Option kOptions[] = {
    {"mode", take_mode},
    {"dispatch_mode", take_mode},
    {"config_path", take_config_path},
    {"default_priority", say<Place::policy, kPriority>},
    {"fallback_policy", say<Place::none, kOrder>},
    {"enable_cache", say<Place::none, kCache>},
    {"cache_size", say<Place::none, kCache>},
    {"cache_ttl_seconds", say<Place::none, kCache>},
    {"enable_fallback", take_fallback},
    {"max_fallback_attempts", say<Place::none, kNoLimit>},
    {"fallback_timeout_ms", say<Place::none, kNoLimit>},
    {"watch_interval_seconds", say<Place::none, kWatch>},
    {"validate_on_reload", say<Place::policy, kAlways>},
    {"enable_transforms", take_transforms},
    {"enable_cuda_graphs", say<Place::code, kGraph>},
    {"sync_after_execution", say<Place::none, kSync>},
    {"enable_telemetry", say<Place::policy, kAlways>},
    {"record_timing", say<Place::none, kTimes>},
    {"log_fallbacks", say<Place::policy, kAlways>},
    {"circuit_breaker_enabled", take_breaker_switch},
    {"failure_threshold", take_threshold},
    {"recovery_timeout_seconds", take_recovery},
    {"static_kernel_map", say<Place::environment, kMap>},
    {"capabilities", say<Place::code, kCapabilities>},
    {"jit_cache_dir", say<Place::none, kWarm>},
};

}  // namespace

void take_layerzero_option(std::string_view name, const Setting& setting, Migration& migration) {
  const auto* const found = std::ranges::find(kOptions, name, &Option::name);
  if (found != std::end(kOptions)) return found->take(setting, migration);
  if (name.starts_with("warmup_")) return migration.note(setting, Place::none, kWarm);
  if (name.starts_with("graph_")) return migration.note(setting, Place::code, kGraph);
  migration.note(setting, Place::unknown, "not a setting of LayerZero");
}

}  // namespace opmux::cli::migrate
