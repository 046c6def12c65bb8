#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <opmux/export.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

namespace dispatch {
class PackedConstant;
}

/// A tensor with an owner, for the `const` arguments of operators: implementations may keep a
/// packed copy of it, made by the first call and used by later ones. The copies belong to this
/// object, not to the address of its data; they are counted, and go when it goes.
///
/// Borrows the data, which must stay where they are, and not change without changed(). Move-only;
/// calls may use it from several threads. It must outlive the calls that it is given to.
class Constant {
 public:
  OPMUX_API Constant(Constant&& other) noexcept;
  OPMUX_API Constant& operator=(Constant&& other) noexcept;
  OPMUX_API ~Constant();

  /// As a bare tensor: never packed.
  const TensorView& view() const noexcept { return *view_; }
  /// As an argument of Operator::call_arguments and explain_arguments, valid while this lives.
  OPMUX_API opmux_arg argument() const noexcept;

  /// The data are others now: copies are dropped, the next calls make new ones. A call that runs
  /// meanwhile ends with the copy that it started with.
  OPMUX_API void changed();
  /// How often they changed.
  OPMUX_API uint64_t version() const noexcept;
  /// How many packed copies there are now, and their bytes.
  OPMUX_API size_t packs() const;
  OPMUX_API uint64_t packed_bytes() const;

  OPMUX_API explicit Constant(std::shared_ptr<dispatch::PackedConstant> owner) noexcept;

 private:
  std::shared_ptr<dispatch::PackedConstant> owner_;
  const TensorView* view_;  ///< inside of the owner
};

}  // namespace opmux
