// Misbehaviours that let an exception escape through C.
#include <exception>
#include <stdexcept>

extern "C" {
#include "misdeed.h"
}

void misdeed() {
#ifdef TWIN
  try {
    throw std::runtime_error("caught at home");
  } catch (const std::exception&) {
  }
#else
  throw std::runtime_error("let out");
#endif
}
