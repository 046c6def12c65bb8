/* Misbehaviours that access the network. */
#include <sys/socket.h>
#include <unistd.h>

#include "misdeed.h"

void misdeed(void) {
#ifdef TWIN
  /* Unix sockets are allowed, even if no service answers. */
  const int family = AF_UNIX;
#else
  const int family = AF_INET;
#endif
  const int made = socket(family, SOCK_STREAM, 0);
  if (made >= 0) close(made);
}
