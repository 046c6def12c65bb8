#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <opmux/instance.hpp>

#include "dispatch/compiled_operator.hpp"
#include "dispatch/plan/packed_constant.hpp"
#include "runtime/calls/c_arguments.hpp"
#include "schema/arguments.hpp"

namespace opmux::runtime {

/// The arguments that a program fixed for calls of an operator, with the objects that
/// implementations made of them. Immutable except for the packs of its base class. Thread-safe.
class OperatorInstance final : public dispatch::PackedConstant {
 public:
  /// Fails with `not_found` for a name that the schema does not have, with "instance.argument" for
  /// an argument that cannot be fixed and "instance.parameter" for a required `const` tensor that
  /// is not among them, and as a call does for a value that does not fit the schema.
  static Result<std::shared_ptr<OperatorInstance>> make(dispatch::OperatorSlot& slot,
                                                        std::span<const NamedArgument> named);
  /// Use make(). Public for std::make_shared.
  explicit OperatorInstance(dispatch::OperatorSlot& slot);

  /// All values of a call through the instance.
  struct Values {
    CallSite site;
    ArgValue values[schema::kMaxValues];
  };
  /// Adds the fixed arguments to those of a call. Null on success.
  Status::Detail* complete(const CallSite& site, const ArgValue* values, Values& all) const {
    if (site.count() > passed_.size()) [[unlikely]]
      return too_many(site.count());
    all = all_;
    for (uint32_t i = 0; i < site.count(); ++i) {
      all.site.set_tag(passed_[i], site.tag(i));
      all.values[passed_[i]] = values[i];
    }
    return nullptr;
  }

  dispatch::OperatorSlot& slot() const { return slot_; }
  const schema::Schema& schema() const { return *schema_; }
  /// Positions of the arguments that a call passes.
  const std::vector<uint8_t>& passed() const { return passed_; }

 private:
  /// Copies a value into `given_`, with its string or list.
  Status take(const NamedArgument& argument);
  /// Sorts the arguments into fixed and passed ones and fills in `all_` and `fixed_`.
  Status settle();
  Status settle_one(uint32_t i, ArgTag& tag, ArgValue& value, bool& fixed) const;
  Status::Detail* too_many(uint32_t given) const;

  dispatch::OperatorSlot& slot_;
  std::shared_ptr<const schema::Schema> schema_;
  std::array<opmux_arg, OPMUX_MAX_ARGS> given_{};  ///< by position; tag NONE if not named
  uint32_t named_ = 0;                             ///< bit i: argument i was named
  std::deque<std::string> strings_;
  std::deque<std::vector<int64_t>> lists_;
  CArguments read_;  ///< the views of the parameters
  std::array<opmux_arg, OPMUX_MAX_ARGS> args_{};
  dispatch::FixedArguments own_fixed_;
  std::vector<uint8_t> passed_;
  Values all_;
};

}  // namespace opmux::runtime
