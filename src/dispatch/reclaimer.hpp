#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "dispatch/thread_block.hpp"

namespace opmux::dispatch {

/// Something unpublished that calls may still be inside of.
class Retired {
 public:
  virtual ~Retired() = default;
  /// Whether a call that runs this plan is inside of it.
  virtual bool owns_plan(uint64_t plan_id) const = 0;
};

/// Frees what was unpublished once no call is inside any more. Callers hold the engine's writer
/// lock.
class Reclaimer {
 public:
  ~Reclaimer();

  /// Takes over what was just unpublished. Never waits; frees earlier things that became free.
  void retire(std::vector<std::unique_ptr<Retired>> items);

  /// Frees what can be freed now.
  void collect();

  /// Things waiting for a call to end.
  size_t waiting() const { return batches_.size(); }

  /// The marks that hold something up.
  std::vector<Blocker> blockers() const;

 private:
  struct Batch {
    std::vector<std::unique_ptr<Retired>> items;
    std::vector<Blocker> blockers;
  };
  std::vector<Batch> batches_;
};

/// The marks of all threads, as they stand after synchronize_all_threads(), that `relevant`
/// accepts.
std::vector<Blocker> marks_in_flight(const std::function<bool(uint64_t mark)>& relevant);

/// Drops the blockers that are over.
void drop_finished(std::vector<Blocker>& blockers);

/// Waits until all of these marks are over. Fails with `failed`, reason "withdraw.inside", if one
/// of them is this thread's own.
Status wait_until_left(std::vector<Blocker> blockers);

}  // namespace opmux::dispatch
