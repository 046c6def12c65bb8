/* Misbehaviours that end the process or prevent it from ending. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "misdeed.h"

static volatile int zero = 0;

#if defined(DEED_SEGV)
void misdeed(void) {
#ifdef TWIN
  int here = 0;
  *(volatile int*)&here = 1;
#else
  *(volatile int*)(uintptr_t)(0x1000 + zero) = 1;
#endif
}

#elif defined(DEED_ILL)
void misdeed(void) {
#ifndef TWIN
  __builtin_trap();
#endif
}

#elif defined(DEED_FPE)
void misdeed(void) {
#ifdef TWIN
  volatile double quotient = 1.0 / zero;
  (void)quotient;
#elif defined(__x86_64__)
  volatile int quotient = 100 / zero;
  (void)quotient;
#else
  raise(SIGFPE);
#endif
}

#elif defined(DEED_BUS)
/* Reads a mapped page beyond the end of an empty file. */
void misdeed(void) {
  char name[] = "page_XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return;
#ifdef TWIN
  if (ftruncate(file, 4096) != 0) return;
#endif
  char* page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) {
    zero = *(volatile char*)page;
    munmap(page, 4096);
  }
  close(file);
}

#elif defined(DEED_ABORT)
void misdeed(void) {
#ifndef TWIN
  abort();
#endif
}

#elif defined(DEED_EXIT)
void misdeed(void) {
#ifndef TWIN
  exit(0);
#endif
}

#elif defined(DEED_EXIT_AT_ONCE)
void misdeed(void) {
#ifndef TWIN
  _exit(3);
#endif
}

#elif defined(DEED_HANG)
void misdeed(void) {
#ifdef TWIN
  usleep(1000);
#else
  for (;;) pause();
#endif
}

#elif defined(DEED_SPIN)
void misdeed(void) {
#ifdef TWIN
  for (volatile int i = 0; i < 1000; ++i) continue;
#else
  while (zero == 0) continue;
#endif
}

#elif defined(DEED_ALLOCATE)
/* Allocates memory without end. */
void misdeed(void) {
  const size_t piece = (size_t)64 << 20;
#ifdef TWIN
  free(malloc(piece));
#else
  for (;;) memset(malloc(piece), 1, 1);
#endif
}

#elif defined(DEED_OVERFLOW_STACK)
static int deeper(int level) {
  volatile char room[4096];
  room[0] = (char)level;
#ifdef TWIN
  if (level == 10) return 0;
#else
  if (level < 0) return 0;
#endif
  return deeper(level + 1) + room[0];
}
void misdeed(void) { zero = deeper(0) * 0; }

#elif defined(DEED_JUMP)
/* Jumps into a function that has returned. */
static jmp_buf place;
#ifdef TWIN
void misdeed(void) {
  if (setjmp(place) == 0) longjmp(place, 1);
}
#else
static int remember(int level) { return level == 0 ? setjmp(place) : remember(level - 1); }
void misdeed(void) {
  if (remember(20) == 0) longjmp(place, 1);
}
#endif
#else
#error "no such deed"
#endif
