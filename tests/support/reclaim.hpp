#pragma once

#include "dispatch/reclaim/reclaimer.hpp"

namespace opmux::test {

/// Destroys the objects that no call uses any more.
inline void collect(dispatch::Reclaimer& reclaimer) {
  reclaimer.collect();
  dispatch::Reclaimer::Finished finished = reclaimer.take_finished();
  finished.items.clear();
  reclaimer.forget(finished.batches);
}

}  // namespace opmux::test
