// Philox4x32-10, a counter-based random generator: the same key and counter give the same numbers
// on every machine and in any order of calls.
#pragma once

#include <array>
#include <cstdint>

namespace opmux::backends {

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  constexpr uint64_t kFirst = 0xD2511F53, kSecond = 0xCD9E8D57;
  constexpr uint32_t kFirstStep = 0x9E3779B9, kSecondStep = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kFirst * counter[0], b = kSecond * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key = {key[0] + kFirstStep, key[1] + kSecondStep};
  }
  return counter;
}

// The `offset`-th 64-bit random number of a seed.
inline uint64_t random_bits(uint64_t seed, uint64_t offset) {
  const auto numbers = philox({uint32_t(offset), uint32_t(offset >> 32), 0, 0},
                              {uint32_t(seed), uint32_t(seed >> 32)});
  return uint64_t{numbers[1]} << 32 | numbers[0];
}

}  // namespace opmux::backends
