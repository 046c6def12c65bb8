#include <opmux/tensor.hpp>

#include <bit>

#include "base/memory.hpp"
#include "dispatch/plan/packed_constant.hpp"
#include "runtime/core.hpp"

namespace opmux {

Constant::Constant(detail::Shared<dispatch::PackedConstant> owner) noexcept
    : owner_(std::move(owner)), view_(owner_.get()) {}
Constant::Constant(Constant&& other) noexcept = default;
Constant& Constant::operator=(Constant&& other) noexcept {
  if (this == &other) return *this;
  const Constant before(std::move(*this));
  owner_ = std::move(other.owner_);
  view_ = other.view_;
  return *this;
}
Constant::~Constant() {
  // Plans bound with this constant keep the object alive, but not its packed copies.
  if (owner_ != nullptr) owner_->release();
}

opmux_arg Constant::argument() const noexcept {
  opmux_arg arg{};
  arg.tag = OPMUX_ARG_TENSOR;
  arg.flags = OPMUX_ARG_CONSTANT;
  arg.value.tensor = &view_->c();
  arg.reserved = std::bit_cast<uint64_t>(view_);
  return arg;
}

void Constant::changed() { owner_->changed(); }
uint64_t Constant::version() const noexcept { return owner_->version(); }
size_t Constant::packs() const { return owner_->packs(); }
uint64_t Constant::packed_bytes() const { return owner_->bytes(); }

Result<Constant> Runtime::constant(const TensorView& view) {
  return base::or_out_of_memory([&]() -> Result<Constant> {
    if (!view.present() || view.data() == nullptr) {
      return Status(Code::invalid_argument, "constant.absent",
                    "a constant needs a tensor with data");
    }
    return Constant(std::make_shared<dispatch::PackedConstant>(view, core_->packs()));
  });
}

uint64_t Runtime::packed_bytes() const { return core_->packs()->used(); }

}  // namespace opmux
