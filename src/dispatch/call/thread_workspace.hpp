#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/system/process.hpp"

namespace opmux::dispatch {

/// Memory for the workspace of a kernel. Belongs to a thread, to a bound plan, or to one call
/// inside another call.
struct WorkspaceBuffer {
  std::unique_ptr<std::byte[]> memory;
  void* start = nullptr;  ///< first byte of `memory` that is aligned to 64
  uint64_t size = 0;      ///< bytes from `start`

  /// Replaces the memory. Frees the old memory first, because a workspace has no contents between
  /// calls. False, and the buffer is empty, if there is not enough.
  bool renew(uint64_t bytes);
};

/// The workspace of one thread: one buffer, which the kernels that the thread runs use in turn. A
/// call inside another call has a separate buffer, because the kernel around it may still use this
/// one.
///
/// The buffer grows to at least twice its size, so that calls of slowly growing shapes seldom
/// allocate; it is never larger than twice the largest request. Plans keep its address and compare
/// version() before they use it.
///
/// Another thread can free the buffer of a thread that runs no call, with the protocol of hazard
/// slots (see ThreadBlock):
///
///   call:    store a mark in hazard slot 0       other:   revoke(): version() becomes 0
///            load version(); if it differs,               synchronize_all_threads()
///            take() under the lock                        load all hazard slots
///            ...use the buffer...                         if none is set, release(): frees unless
///            clear the slot                               take() has set another version
///
/// A call that has loaded the version before it became 0 is seen in its hazard slot; a later call
/// waits for the lock, and finds the buffer or allocates.
///
/// The thread calls take(); other threads call the rest while they hold ThreadList::lock().
class ThreadWorkspace {
 public:
  /// A part of the buffer, and the version for which it is valid. `start` is null if there is not
  /// enough memory.
  struct Part {
    void* start = nullptr;
    uint64_t version = 0;  ///< never 0 if `start` is set
  };

  /// Changes when the buffer moves; 0 while it is revoked or has no memory.
  const std::atomic<uint64_t>& version() const { return version_; }

  /// Returns `size` bytes, more than 0, that are valid until the thread's call ends. The thread
  /// must have a mark in hazard slot 0, and no kernel may be using the buffer. If the buffer was
  /// revoked since the last call of take(), and more than half of it was not needed since the
  /// revocation before that, it shrinks.
  Part take(uint64_t size);

  /// Makes the next call of the thread use take(). Returns whether there is a buffer to free that
  /// was not revoked before. `by` identifies the caller.
  bool revoke(const void* by);
  /// True if `by` revoked the buffer and the thread has not used take() since.
  bool revoked_by(const void* by);
  /// Frees the buffer if it is still revoked. The caller has synchronized all threads after the
  /// revocation, and then found no mark of the thread.
  void release();
  /// Bytes that the buffer has now.
  uint64_t size();

 private:
  base::ForkMutex mutex_;  ///< guards everything but loads of `version_`
  std::atomic<uint64_t> version_{0};
  uint64_t last_version_ = 0;
  WorkspaceBuffer buffer_;
  uint64_t largest_ = 0;         ///< largest request since the last revocation
  uint64_t largest_before_ = 0;  ///< largest request between the two revocations before
  const void* revoker_ = nullptr;
};

}  // namespace opmux::dispatch
