#include "replay/call_dumper.hpp"

#include "base/memory.hpp"
#include "base/tag_table.hpp"
#include "dispatch/call/thread_block.hpp"
#include "verify/call_copy.hpp"

namespace opmux::replay {
namespace {

/// Copies the arguments of one implementation's calls before and after they run.
class DumpTap final : public dispatch::CallTap {
 public:
  DumpTap(const CallDumper& dumper, std::shared_ptr<const schema::Schema> schema,
          registry::ImplementationPtr implementation, std::shared_ptr<CallTap> inner)
      : CallTap({&DumpTap::run, this}),
        dumper_(dumper),
        schema_(std::move(schema)),
        implementation_(std::move(implementation)),
        inner_(std::move(inner)) {}

  void pass_transformed() noexcept override {
    dumper_.recorder().leave_out();
    if (inner_ != nullptr) inner_->pass_transformed();
  }
  /// The arguments of an opaque operator are not known, so that nothing can be stored.
  void pass_opaque(const schema::Signature& signature, dispatch::OpaqueRunner& runner) override {
    dumper_.recorder().leave_out();
    if (inner_ != nullptr) inner_->pass_opaque(signature, runner);
  }

 private:
  static int32_t run(void* self, const opmux_call* call) {
    DumpTap& tap = *static_cast<DumpTap*>(static_cast<CallTap*>(self));
    if (!tap.dumper_.recorder().has_room()) return tap.run_inner(call);
    return tap.run_counted(*call);
  }

  int32_t run_inner(const opmux_call* call) const {
    const registry::RunEntry& own =
        inner_ != nullptr ? inner_->entry() : implementation_->run_entry();
    return own.run(own.user_data, call);
  }

  int32_t run_counted(const opmux_call& call) {
    CallDumper::Turn turn;
    std::unique_ptr<verify::CallCopy> copy;
    const auto tag = static_cast<uint32_t>(call.tag);
    // A call for which there is no memory runs without a copy.
    base::if_memory([&] {
      turn = dumper_.enter(implementation_->op, tag);
      if (turn.due) copy = copied(call);
    });
    const int32_t outcome = run_inner(&call);
    base::if_memory([&] {
      if (outcome != OPMUX_OK) {
        dumper_.leave(implementation_->op, tag);
      } else if (copy != nullptr) {
        copy->take_outputs(call);
        dumper_.recorder().keep({*implementation_, *schema_, *copy, turn.layer, turn.step,
                                 static_cast<uint32_t>(dispatch::thread_block->context),
                                 call.max_threads});
      }
    });
    return outcome;
  }

  std::unique_ptr<verify::CallCopy> copied(const opmux_call& call) {
    const bool elsewhere = implementation_->backend->history() != nullptr ||
                           implementation_->backend->device() != nullptr;
    if (elsewhere || verify::CallCopy::obstacle(call) != verify::NoCopy::none) {
      dumper_.recorder().leave_out();
      return nullptr;
    }
    return std::make_unique<verify::CallCopy>(call);
  }

  const CallDumper& dumper_;
  std::shared_ptr<const schema::Schema> schema_;
  registry::ImplementationPtr implementation_;
  std::shared_ptr<CallTap> inner_;
};

}  // namespace

CallDumper::CallDumper(CallRecorder& recorder, const dispatch::TapView& others, DumpFilter filter)
    : recorder_(recorder), others_(others), filter_(std::move(filter)) {}

std::shared_ptr<dispatch::CallTap> CallDumper::tap_of(
    const registry::OperatorRecord& op, const registry::ImplementationPtr& implementation) const {
  std::shared_ptr<dispatch::CallTap> inner = others_.tap_of(op, implementation);
  if (!filter_.fits_operator(implementation->op)) return inner;
  return std::make_shared<DumpTap>(*this, op.schema, implementation, std::move(inner));
}

CallDumper::Turn CallDumper::enter(const std::string& op, uint32_t tag) const {
  const uint64_t step = steps_.with([&](auto& steps) { return steps[{op, tag}]++; });
  if (!filter_.fits_step(step)) return {};
  std::string layer = base::tag_word(tag);
  const bool due = filter_.fits_layer(layer);
  return {std::move(layer), step, due};
}

void CallDumper::leave(const std::string& op, uint32_t tag) const {
  steps_.with([&](auto& steps) { return steps[{op, tag}]--; });
}

}  // namespace opmux::replay
