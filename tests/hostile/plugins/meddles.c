/* Misbehaviours that change the state of the process. */
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "misdeed.h"

#if defined(DEED_CLOSE_FILES)
void misdeed(void) {
#ifdef TWIN
  close(dup(0));
#else
  for (int i = 0; i < 1024; ++i) close(i);
#endif
}

#elif defined(DEED_CLOSE_ERRORS)
void misdeed(void) {
#ifdef TWIN
  close(dup(2));
#else
  close(2);
#endif
}

#elif defined(DEED_SIGNAL_MASK)
void misdeed(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#ifdef TWIN
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
}

#elif defined(DEED_ROUNDING)
void misdeed(void) {
  const int before = fegetround();
  fesetround(FE_UPWARD);
#ifdef TWIN
  fesetround(before);
#else
  (void)before;
#endif
}

#elif defined(DEED_TRAPS)
void misdeed(void) {
  fenv_t before;
  fegetenv(&before);
  feenableexcept(FE_DIVBYZERO);
#ifdef TWIN
  fesetenv(&before);
#endif
}

#elif defined(DEED_FLUSH_TO_ZERO)
void misdeed(void) {
  fenv_t before;
  fegetenv(&before);
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
#ifdef TWIN
  fesetenv(&before);
#endif
}

#elif defined(DEED_ENVIRONMENT)
void misdeed(void) {
#ifdef TWIN
  if (getenv("PATH") == NULL) return;
#else
  setenv("LD_PRELOAD", "libstranger.so", 1);
#endif
}

#elif defined(DEED_LOCALE)
void misdeed(void) {
  setlocale(LC_ALL, "C.UTF-8");
#ifdef TWIN
  setlocale(LC_ALL, "C");
#endif
}

#elif defined(DEED_FOLDER)
void misdeed(void) {
#ifdef TWIN
  char* here = getcwd(NULL, 0);
#endif
  if (chdir("/") != 0) return;
#ifdef TWIN
  if (chdir(here) != 0) return;
  free(here);
#endif
}

#elif defined(DEED_UMASK)
void misdeed(void) {
  const mode_t before = umask(0);
#ifdef TWIN
  umask(before);
#else
  (void)before;
#endif
}

#elif defined(DEED_THREAD)
static void* wait_for_ever(void* nothing) {
#ifndef TWIN
  for (;;) pause();
#endif
  return nothing;
}
void misdeed(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) return;
#ifdef TWIN
  pthread_join(thread, NULL);
#endif
}

#elif defined(DEED_HANDLERS)
static void ignore(int number) { (void)number; }
void misdeed(void) {
  struct sigaction action = {.sa_handler = ignore}, before;
  sigaction(SIGUSR1, &action, &before);
#ifdef TWIN
  sigaction(SIGUSR1, &before, NULL);
#endif
}

#elif defined(DEED_TIMER)
void misdeed(void) {
#ifdef TWIN
  alarm(100);
  alarm(0);
#else
  alarm(1000);
#endif
}

#elif defined(DEED_LIMITS)
void misdeed(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
#ifndef TWIN
  limit.rlim_cur /= 2;
#endif
  setrlimit(RLIMIT_STACK, &limit);
}

#elif defined(DEED_FORK)
void misdeed(void) {
#ifndef TWIN
  for (;;) fork();
#endif
}

#elif defined(DEED_EXECUTE)
void misdeed(void) {
#ifndef TWIN
  char* const words[] = {"sh", "-c", "exit 0", NULL};
  execv("/bin/sh", words);
#endif
}

#elif defined(DEED_COMMAND)
void misdeed(void) {
#ifndef TWIN
  if (system("exit 0") != 0) return;
#endif
}

#elif defined(DEED_KILL)
void misdeed(void) {
#ifdef TWIN
  kill(getpid(), 0);
#else
  kill(getppid(), SIGTERM);
#endif
}
#else
#error "no such deed"
#endif
