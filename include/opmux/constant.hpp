#pragma once

#include <cstddef>
#include <cstdint>

#include <opmux/detail/pointer.hpp>
#include <opmux/export.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

namespace dispatch {
class PackedConstant;
}

/// A tensor with an owner, for the `const` arguments of operators, such as the weight of `linear`.
/// An implementation may keep a packed copy of it (blocked for its kernels, for example): the first
/// call packs, later calls reuse the copy. A plain TensorView in the same place is never packed.
///
///   const opmux::Operator linear = runtime.op("linear").value();
///   std::vector<float> rows(64 * 64, 0.5f), x(4 * 64), y(4 * 64);
///   opmux::Constant weight =
///       runtime.constant(opmux::TensorView(rows.data(), opmux::f32, {64, 64})).value();
///   opmux::TensorView in(x.data(), opmux::f32, {4, 64}), out(y.data(), opmux::f32, {4, 64});
///   opmux::Status status = linear(out, in, weight);
///   rows[0] = 1;
///   weight.changed();  // the next call packs again
///   std::cout << status.to_string() << ", packed " << weight.packed_bytes() << " bytes\n";
///
/// Made by Runtime::constant(). It borrows the data, which must stay where they are and must not
/// change without changed(). Copies belong to this object, count towards Options::max_packed_bytes
/// and are freed with it; a copy beyond that limit is not made, and calls use the plain data.
///
/// Move-only. Calls may use one Constant from several threads. It must outlive the calls it is
/// passed to.
class Constant {
 public:
  /// Moves the packed copies along; arguments made by argument() stay valid. Do not use a
  /// moved-from Constant.
  OPMUX_API Constant(Constant&& other) noexcept;
  OPMUX_API Constant& operator=(Constant&& other) noexcept;
  /// Frees the packed copies. No call may be using this object.
  OPMUX_API ~Constant();

  /// The tensor as a plain view. Calls with it do not use packed copies.
  const TensorView& view() const noexcept { return *view_; }
  /// This constant as an argument of Operator::call_arguments() and the other functions that take
  /// opmux_arg. Valid while this object lives.
  OPMUX_API opmux_arg argument() const noexcept;

  /// Call this after the data were modified. Drops all packed copies; the next calls make new ones.
  /// A call that is running at the same time finishes with the copy it started with.
  OPMUX_API void changed();
  /// Number of calls to changed().
  OPMUX_API uint64_t version() const noexcept;
  /// Number of packed copies that exist now, at most one for each implementation, and their bytes.
  OPMUX_API size_t packs() const;
  OPMUX_API uint64_t packed_bytes() const;

  /// For Runtime::constant().
  OPMUX_API explicit Constant(detail::Shared<dispatch::PackedConstant> owner) noexcept;

 private:
  detail::Shared<dispatch::PackedConstant> owner_;
  const TensorView* view_;  ///< Points into the owner.
};

}  // namespace opmux
