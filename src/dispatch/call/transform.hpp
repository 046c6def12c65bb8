#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "policy/rules/policy_entry.hpp"
#include "registry/implementation/capability.hpp"
#include "schema/dependencies.hpp"

namespace opmux::dispatch {

/// Copies and conversions around a kernel that let it accept a call's tensors; part of a plan.
struct Transforms {
  uint32_t contiguous = 0;  ///< bit i: argument i is passed as a row-major copy
  uint32_t widened = 0;     ///< bit i: argument i, f16 or bf16, is passed as a copy in f32

  bool any() const { return (contiguous | widened) != 0; }
  friend bool operator==(const Transforms&, const Transforms&) = default;
};

/// The cost of transforms in points of priority, which is subtracted from the score.
double cost_of(const Transforms& transforms);

/// Formats transforms as "contiguous(x), widen(y, x, weight)"; empty if there are none.
std::string describe(const Transforms& transforms, const schema::Schema& schema);

/// A call's arguments after transforms, as the kernel sees them. The original must outlive them.
class TransformedArguments {
 public:
  explicit TransformedArguments(const schema::Signature& original);
  TransformedArguments(const schema::Signature& original, const Transforms& transforms);
  TransformedArguments(const TransformedArguments&) = delete;
  TransformedArguments& operator=(const TransformedArguments&) = delete;

  /// Applies the transforms in `allowed` (policy::kContiguous, kWiden) that an implementation's
  /// capabilities need. False if that is not enough.
  bool fit(const registry::Capability& capability, uint8_t allowed);
  const Transforms& transforms() const { return transforms_; }
  const schema::Signature& signature() const { return changed_; }

  /// Allocates the copies and fills those that the kernel reads. False if allocation fails.
  bool fill();
  /// Copies the kernel's results back to the caller's tensors.
  void write_back() const;

 private:
  bool step(const registry::CapabilityCheck& failing, uint8_t allowed);
  bool may_change(size_t arg) const;
  bool widen_all();
  void change(size_t arg);
  bool changed(size_t arg) const;

  schema::Signature original_, changed_;
  schema::Arguments arguments_;
  Transforms transforms_;
  std::array<TensorView, OPMUX_MAX_ARGS> views_;
  std::array<std::unique_ptr<std::byte[]>, OPMUX_MAX_ARGS> memory_;
};

/// Adds the facts that fit() can read besides capabilities.
void add_transform_facts(const schema::Schema& schema, schema::Dependencies& into);

}  // namespace opmux::dispatch
