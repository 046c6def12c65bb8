#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <opmux/status.hpp>

#include "dispatch/decide/evaluation.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/reclaim/slow_path_guard.hpp"
#include "schema/arguments.hpp"

namespace opmux::dispatch {

/// A call that is run again and again by chosen implementations, to compare their speeds.
/// Independent of normal calls: the runs are not counted, nothing is cached, there is no fallback,
/// and only the calling thread is used. For one thread, on which it keeps the operator's state from
/// being reclaimed; destroy it soon.
class RepeatedCall {
 public:
  /// The arguments must outlive it. Decides the call as one with one thread outside of scopes.
  /// Fails if no implementation accepts it.
  static Result<std::unique_ptr<RepeatedCall>> make(OperatorSlot& slot,
                                                    const schema::Arguments& arguments,
                                                    uint32_t tag);
  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;

  /// The candidates of the best tier that need no transforms; the first is what a call runs.
  size_t candidates() const { return parts_.size(); }
  const registry::ImplementationRecord& candidate(size_t at) const {
    return *parts_[at].implementation;
  }
  /// Whether measured rows are about this call.
  bool has_rows() const { return has_rows_; }
  const schema::Signature& signature() const { return signature_; }

  /// Returns the outcome of the candidate.
  Status run(size_t at);

 private:
  RepeatedCall(OperatorSlot& slot, const schema::Arguments& arguments, uint32_t tag);
  Status decide();

  OperatorSlot& slot_;
  const SlowPathGuard mark_;
  schema::BoundDims dims_;
  schema::Signature signature_;
  std::vector<CandidateParts> parts_;
  bool has_rows_ = false;
};

}  // namespace opmux::dispatch
