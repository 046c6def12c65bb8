#pragma once

/// Marks a class or function that libopmux exports. The library is compiled with hidden visibility,
/// so a declaration without this mark cannot be linked against. For opmux only: plugins use
/// OPMUX_EXPORT of abi.h for their query function.
#define OPMUX_API __attribute__((visibility("default")))
