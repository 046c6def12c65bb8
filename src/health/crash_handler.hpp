#pragma once

#include "health/journal_file.hpp"

namespace opmux::health {

/// Notes in the process's journal which implementation a thread was in when it faulted (SIGSEGV,
/// SIGBUS, SIGILL, SIGFPE, SIGABRT), then does what would have been done without it: calls the
/// handler that was there before, or lets the process end. Thread-safe.
void install_crash_handler();
/// The handlers that were there before are there again, unless others came after this one.
void remove_crash_handler();

/// Where faults are noted from now on; null = nowhere. The object lives until the process ends.
void note_faults_in(const JournalFile* journal);

/// Gives the calling thread a stack to note the overflow of its own on, unless it has one.
void ensure_signal_stack();

/// The calling thread gives up its marks inside of an implementation: it ends, and maybe the
/// process with it, since exit() ends the thread that calls it first.
void thread_ends_inside(uint32_t number);

/// The process ends by exit() on this thread; returns whether that is inside of an implementation.
bool note_exit();

}  // namespace opmux::health
