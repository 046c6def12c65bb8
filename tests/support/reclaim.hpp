#pragma once

#include "dispatch/reclaim/reclaimer.hpp"

namespace opmux::test {

/// Destroys the objects that no call uses any more.
inline void collect(dispatch::Reclaimer& reclaimer) {
  reclaimer.collect();
  dispatch::Reclaimer::Batches finished = reclaimer.take_finished();
  for (auto& batch : finished) batch.clear();
  reclaimer.forget(finished);
}

}  // namespace opmux::test
