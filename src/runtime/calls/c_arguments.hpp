#pragma once

#include <array>
#include <memory>
#include <vector>

#include <opmux/detail/call_site.hpp>
#include <opmux/status.hpp>

#include "schema/schema.hpp"

namespace opmux::runtime {

/// Converts the arguments of a C call to the engine's form. The views are stored inside, so the
/// object must not move while they are used. Only lists of tensors allocate.
class CArguments {
 public:
  CArguments() noexcept = default;
  CArguments(const CArguments&) = delete;
  CArguments& operator=(const CArguments&) = delete;

  /// Null on success. Call it once per object.
  Status::Detail* read(const schema::Schema& schema, const opmux_arg* args,
                       uint32_t count) noexcept;

  const CallSite& site() const { return site_; }
  const ArgValue* values() const { return values_; }

 private:
  /// Storage for the view or list of one argument. Left uninitialised, because most calls use few
  /// of them.
  union Storage {
    Storage() noexcept {}
    TensorView view;
    opmux_list list;
  };
  struct TensorList {
    std::vector<TensorView> views;
    std::vector<const TensorView*> pointers;
  };

  bool put(const schema::ArgSpec* spec, const opmux_arg& arg, uint32_t i);
  bool put_tensors(const opmux_list& list, uint32_t i);

  CallSite site_;
  ArgValue values_[OPMUX_MAX_ARGS];
  Storage storage_[OPMUX_MAX_ARGS];
  std::vector<std::unique_ptr<TensorList>> tensor_lists_;
};

}  // namespace opmux::runtime
