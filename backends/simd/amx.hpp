// Tiles of AMX: the registers' shapes, and whether a process may use them.
#pragma once

#include <opmux/plugin.hpp>

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "backends/simd/targets.hpp"

namespace opmux::backends::simd {

#define OPMUX_TILES \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")))

inline constexpr Target kAmx{
    "amx", "amx_tile,amx_bf16,avx512f,avx512vl,avx512bw,avx512dq,avx512_bf16", 160};
inline constexpr int64_t kTileSide = 16;   // rows of a tile, and sums in each
inline constexpr int64_t kTileDepth = 32;  // 16-bit elements in a row of a tile
inline constexpr int64_t kTileLine = 64;   // bytes of a row of a tile

// Eight tiles of full size, in the words of the instruction.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {kTileLine, kTileLine, kTileLine, kTileLine,
                        kTileLine, kTileLine, kTileLine, kTileLine};
  uint8_t rows[16] = {kTileSide, kTileSide, kTileSide, kTileSide,
                      kTileSide, kTileSide, kTileSide, kTileSide};
};

// g++ takes the first word of the shapes for all that is read, and may leave the others unwritten.
OPMUX_TILES inline void use_tiles(const TileShapes& shapes) {
  asm volatile("" ::"m"(shapes));
  _tile_loadconfig(&shapes);
}

// Linux lends a process the registers of tiles on request, for good.
inline int32_t tiles_are_lent(opmux_error* why) {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  if (granted) return OPMUX_OK;
  return plugin::decline(why, "simd.tiles", "the system does not let this process use AMX tiles");
}

}  // namespace opmux::backends::simd
