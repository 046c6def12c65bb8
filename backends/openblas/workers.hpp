// Distributes tasks over the threads that the host lends; each thread gets separate scratch memory.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <cstdint>

#include "backends/openblas/one_thread.hpp"

namespace opmux::backends::openblas {

// Bytes of one thread's scratch memory, rounded up to whole cache lines.
inline uint64_t room_bytes(int64_t floats) {
  return (uint64_t(floats) * sizeof(float) + 63) / 64 * 64;
}

inline int64_t wanted_workers(const plugin::Call& call, int64_t pieces) {
  return call.parallel() && takes_several_callers()
             ? std::min<int64_t>(call.c().max_threads, pieces)
             : 1;
}

inline uint64_t workspace_of(const plugin::Call& call, int64_t pieces, int64_t floats) {
  return pieces == 0 ? 0 : uint64_t(wanted_workers(call, pieces)) * room_bytes(floats);
}

// Calls piece(i, room) for each i in [0, pieces); `room` has space for `floats` floats.
template <class Piece>
int32_t share_out(const plugin::Call& call, int64_t pieces, int64_t floats, const Piece& piece) {
  if (pieces == 0) return OPMUX_OK;
  int64_t workers = wanted_workers(call, pieces);
  const uint64_t room = room_bytes(floats);
  if (room > 0) workers = std::min(workers, int64_t(call.c().workspace_size / room));
  if (workers == 0) {
    return plugin::report(call.error(), OPMUX_RESOURCE, "openblas.workspace",
                          "the workspace is smaller than requested");
  }
  const OneThread here;
  call.for_each(workers, [&](int64_t worker) {
    const OneThread there;  // The limit may be per thread.
    char* first = static_cast<char*>(call.workspace()) + uint64_t(worker) * room;
    for (int64_t i = worker; i < pieces; i += workers) piece(i, reinterpret_cast<float*>(first));
  });
  return OPMUX_OK;
}

}  // namespace opmux::backends::openblas
