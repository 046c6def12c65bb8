#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "policy/transform_words.hpp"
#include "registry/capability.hpp"
#include "registry/dependencies.hpp"

namespace opmux::dispatch {

/// What is done around a kernel so that it can take a call's tensors: a step of its plan.
struct Transforms {
  uint32_t contiguous = 0;  ///< bit i: argument i goes by way of a row-major copy
  uint32_t widened = 0;     ///< bit i: argument i, f16 or bf16, goes by way of f32

  bool any() const { return (contiguous | widened) != 0; }
  friend bool operator==(const Transforms&, const Transforms&) = default;
};

/// In points of priority.
double cost_of(const Transforms& transforms);

/// "contiguous(x), widen(y, x, weight)"; empty if there are none.
std::string describe(const Transforms& transforms, const registry::Schema& schema);

/// A call's arguments as a kernel behind transforms sees them. The original must outlive it.
class TransformedArguments {
 public:
  explicit TransformedArguments(const registry::Signature& original);
  TransformedArguments(const registry::Signature& original, const Transforms& transforms);
  TransformedArguments(const TransformedArguments&) = delete;
  TransformedArguments& operator=(const TransformedArguments&) = delete;

  /// Takes the steps of `allowed` (policy::kContiguous, kWiden) that an implementation's
  /// capabilities ask for. False if they do not help.
  bool fit(const registry::Capability& capability, uint8_t allowed);
  const Transforms& transforms() const { return transforms_; }
  const registry::Signature& signature() const { return changed_; }

  /// Makes the copies and fills those that are read; false if there is no memory.
  bool fill();
  /// Brings what the kernel wrote to where the caller wants it.
  void write_back() const;

 private:
  bool step(const registry::CapabilityCheck& failing, uint8_t allowed);
  bool may_change(size_t arg) const;
  bool widen_all();
  void change(size_t arg);
  bool changed(size_t arg) const;

  registry::Signature original_, changed_;
  registry::Arguments arguments_;
  Transforms transforms_;
  std::array<TensorView, OPMUX_MAX_ARGS> views_;
  std::array<std::unique_ptr<std::byte[]>, OPMUX_MAX_ARGS> memory_;
};

/// What fit() can look at besides capabilities.
void add_transform_facts(const registry::Schema& schema, registry::Dependencies& into);

}  // namespace opmux::dispatch
