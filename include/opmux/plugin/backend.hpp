/// A set of implementations of one provider. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/plugin/caps.hpp>
#include <opmux/plugin/implementation.hpp>
#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// A set of implementations with one name, one kind and one availability check.
///
///   namespace op = opmux::plugin;
///   op::Backend backend =
///       op::Backend{"acme", OPMUX_KIND_VENDOR}
///           .vendor("acme")
///           .available([](opmux_error* why) {
///             const bool driver = true;  // ask the driver
///             return driver ? OPMUX_OK : op::decline(why, "acme.driver", "driver 3.2 is needed");
///           })
///           .add(op::Impl{"softmax", "v1"}.run([](const op::Call&) { return OPMUX_DECLINED; }));
///
/// Functions return *this for chaining. Plugin::add() copies the object.
class Backend {
 public:
  /// `name` is the provider in every id; `kind` is an OPMUX_KIND_*.
  Backend(std::string_view name, int32_t kind, int32_t device_type = OPMUX_DEVICE_CPU) {
    c_.struct_size = sizeof c_;
    c_.name = str(name);
    c_.kind = kind;
    c_.device_type = device_type;
    c_.priority = -1;
  }
  /// Required for OPMUX_KIND_VENDOR.
  Backend& vendor(std::string_view name) { return c_.vendor = str(name), *this; }
  /// Order among backends that answer the same specialization point; default of the kind if not
  /// set.
  Backend& priority(int32_t value) { return c_.priority = value, *this; }
  /// Adds OPMUX_BACKEND_*.
  Backend& flags(uint32_t flags) { return c_.flags |= flags, *this; }
  /// Functions for memory that the CPU cannot access; the table is borrowed and must have static
  /// lifetime.
  Backend& device(const opmux_device_table* table) { return c_.device = table, *this; }
  /// Sets the availability check: returns OPMUX_OK, or decline(why, ...) with the reason. Called
  /// once, when a decision first needs it; an exception counts as not available. Without it the
  /// backend is always available.
  Backend& available(std::function<int32_t(opmux_error*)> fn) {
    available_ = std::move(fn);
    c_.is_available = [](void* self, opmux_error* why) {
      return guarded(why, [&] { return static_cast<Backend*>(self)->available_(why); });
    };
    return *this;
  }
  /// Names the device type if the vendor defines it (OPMUX_DEVICE_VENDOR and above): "acme".
  Backend& device_name(std::string_view name) { return c_.device_name = str(name), *this; }
  /// Sets the function that returns the architecture of a device by its number, as numbers with
  /// dots between them: "9.0". The text must have static lifetime; empty: the device has none.
  /// Caps::arch() is compared with it. Called once per device; an exception counts as none.
  Backend& architecture(std::function<std::string_view(int32_t)> fn) {
    architecture_ = std::move(fn);
    c_.architecture = [](void* self, int32_t device, opmux_str* text) {
      return guarded(nullptr, [&] {
        *text = str(static_cast<Backend*>(self)->architecture_(device));
        return text->size == 0 ? OPMUX_DECLINED : OPMUX_OK;
      });
    };
    return *this;
  }
  /// Adds a copy of an implementation.
  Backend& add(const Impl& impl) { return impls_.push_back(impl), *this; }

 private:
  friend class Plugin;
  opmux_backend seal() {
    sealed_.clear();
    for (Impl& impl : impls_) sealed_.push_back(impl.seal());
    c_.user_data = this;
    Caps::publish(sealed_, c_.impls, c_.impl_count, c_.impl_stride);
    return c_;
  }

  opmux_backend c_{};
  std::function<int32_t(opmux_error*)> available_;
  std::function<std::string_view(int32_t)> architecture_;
  std::vector<Impl> impls_;
  std::vector<opmux_impl> sealed_;
};

}  // namespace opmux::plugin
