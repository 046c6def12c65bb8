#pragma once

#include "crash/journal_file.hpp"

namespace opmux::crash {

/// Installs a signal handler that records in the process's journal which implementation a thread
/// was in when it faulted (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT). It then calls the previous
/// handler or lets the process end. Where the program does not handle SIGTERM, SIGINT or SIGHUP,
/// another handler records that the process was asked to end. Thread-safe.
void install_crash_handler();
/// Restores the previous handlers, except where another handler was installed later.
void remove_crash_handler();

/// Sets the journal for later faults; null = none. The object must live until the process ends.
void note_faults_in(const JournalFile* journal);

/// Gives the calling thread an alternate signal stack unless it has one, so that a stack overflow
/// can be recorded.
void ensure_signal_stack();
/// Takes back the stack that ensure_signal_stack() gave the calling thread.
void free_signal_stack();

/// Called when a thread that is inside an implementation or a plugin gives up its marks because it
/// ends; `word` is HazardSlotPlaces::innermost(). The process may be ending too, since exit() first
/// ends the thread that calls it.
void thread_ends_inside(uint32_t word);

/// Records that the process ends by exit() on this thread. Returns whether the thread is inside an
/// implementation.
bool note_exit();

}  // namespace opmux::crash
