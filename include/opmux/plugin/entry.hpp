/// The whole plugin, and the body of its query function. Part of <opmux/plugin.hpp>, which has an
/// example.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <opmux/plugin/backend.hpp>
#include <opmux/plugin/caps.hpp>
#include <opmux/plugin/implementation.hpp>
#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// Everything that a plugin registers: backends with implementations, operators, answers to points,
/// and functions for startup and shutdown. Owns the storage of all descriptors.
///
///   namespace op = opmux::plugin;
///   op::Plugin plugin = op::Plugin{"acme", "1.0"}
///                           .vendor("acme")
///                           .schema("acme.twice(out Tensor y[N], Tensor x[N])")
///                           .init([](const opmux_host*) {})
///                           .add(op::Backend{"acme", OPMUX_KIND_VENDOR}.vendor("acme"));
///
/// Functions return *this for chaining. Return it from the function that is passed to answer().
class Plugin {
 public:
  /// Name and version, as `opmux plugin list` shows them.
  Plugin(std::string_view name, std::string_view version) {
    c_.struct_size = sizeof c_;
    c_.abi_major = OPMUX_ABI_MAJOR;
    c_.abi_minor = OPMUX_ABI_MINOR;
    c_.name = str(name);
    c_.version = str(version);
  }
  /// Name of the vendor, for lists and messages.
  Plugin& vendor(std::string_view name) { return c_.vendor = str(name), *this; }
  /// Identifies the build in lockfiles and quarantines; the library's build id if not set.
  Plugin& build_id(std::string_view id) { return c_.build_id = str(id), *this; }
  /// Adds OPMUX_PLUGIN_*.
  Plugin& flags(uint32_t flags) { return c_.flags |= flags, *this; }
  /// Adds a copy of a backend.
  Plugin& add(const Backend& backend) { return backends_.push_back(backend), *this; }
  /// Defines an operator, named "vendor.name".
  Plugin& schema(std::string_view text) {
    return schemas_.push_back({sizeof(opmux_schema_text), 0, str(text)}), *this;
  }
  /// Answers a specialization point such as "gemm.tile_n(Device) -> int" on behalf of a backend.
  /// `fn` returns the answer, or nullopt for "no answer"; text in it must stay valid until the next
  /// call.
  Plugin& point(std::string_view signature, std::string_view backend,
                std::function<std::optional<opmux_arg>(Impl::Args)> fn) {
    points_.push_back({sizeof(opmux_point), 0, str(signature), str(backend), nullptr, ask});
    answers_.push_back(std::move(fn));
    return *this;
  }
  /// fn(const opmux_host*) runs after loading and may start threads and devices; the host pointer
  /// stays valid for the life of the process. An outcome other than OPMUX_OK, or an exception,
  /// refuses the plugin.
  template <class Fn>
  Plugin& init(Fn fn) {
    init_ = [fn](const opmux_host* host, opmux_error* error) {
      return guarded(error, [&] { return fn(host); });
    };
    c_.init = [](void* self, const opmux_host* host, opmux_error* error) {
      return static_cast<Plugin*>(self)->init_(host, error);
    };
    return *this;
  }
  /// fn() checks the plugin in the probe process, before it is loaded; a failure refuses the
  /// plugin.
  template <class Fn>
  Plugin& self_test(Fn fn) {
    test_ = [fn](opmux_error* error) { return guarded(error, fn); };
    c_.self_test = [](void* self, opmux_error* error) {
      return static_cast<Plugin*>(self)->test_(error);
    };
    return *this;
  }
  /// fn() runs when no runtime uses the plugin any more; exceptions are ignored.
  Plugin& shutdown(std::function<void()> fn) {
    shutdown_ = std::move(fn);
    c_.shutdown = [](void* self) { guarded(nullptr, static_cast<Plugin*>(self)->shutdown_); };
    return *this;
  }

  /// Fixes all addresses; the object must not move from then on. answer() calls it.
  void seal() {
    sealed_.clear();
    for (Backend& backend : backends_) sealed_.push_back(backend.seal());
    for (size_t i = 0; i < points_.size(); ++i) points_[i].user_data = &answers_[i];
    c_.user_data = this;
    Caps::publish(sealed_, c_.backends, c_.backend_count, c_.backend_stride);
    Caps::publish(schemas_, c_.operators, c_.operator_count, c_.operator_stride);
    Caps::publish(points_, c_.points, c_.point_count, c_.point_stride);
  }
  /// Writes as much as the struct of the host holds. answer() calls it.
  int32_t write(opmux_plugin* out) const noexcept {
    const uint32_t size = std::min(out->struct_size, uint32_t{sizeof c_});
    std::memcpy(out, &c_, size);
    std::memcpy(out, &size, sizeof size);
    return OPMUX_OK;
  }

 private:
  using Answer = std::function<std::optional<opmux_arg>(Impl::Args)>;
  static int32_t ask(void* fn, const opmux_arg* args, uint32_t count, opmux_arg* answer) {
    return guarded(nullptr, [&]() -> int32_t {
      const std::optional<opmux_arg> given = (*static_cast<Answer*>(fn))(Impl::Args{args, count});
      if (!given) return OPMUX_DECLINED;
      *answer = *given;
      return OPMUX_OK;
    });
  }

  opmux_plugin c_{};
  std::vector<Backend> backends_;
  std::vector<opmux_backend> sealed_;
  std::vector<opmux_schema_text> schemas_;
  std::vector<opmux_point> points_;
  std::vector<Answer> answers_;
  std::function<int32_t(const opmux_host*, opmux_error*)> init_;
  std::function<int32_t(opmux_error*)> test_;
  std::function<void()> shutdown_;
};

/// The body of a query function. `build` is a lambda without captures that returns the Plugin; it
/// is called once, and the plugin lives until the process ends. Returns OPMUX_INVALID_ARGUMENT if
/// `out` is null or too small for struct_size, and OPMUX_FAILED if `build` throws.
template <class Build>
int32_t answer(const opmux_host*, opmux_plugin* out, Build build) noexcept {
  static_assert(std::is_empty_v<Build>,
                "pass a lambda without captures: it is called once per type");
  if (!out || out->struct_size < sizeof out->struct_size) return OPMUX_INVALID_ARGUMENT;
  return guarded(nullptr, [&] {
    static const Plugin* plugin = [&] {
      auto made = std::make_unique<Plugin>(build());
      made->seal();
      return made.release();
    }();
    return plugin->write(out);
  });
}

}  // namespace opmux::plugin
