// AMX tile registers: their shapes, and the permission to use them.
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
inline constexpr int64_t kTileSide = 16;   // Rows of a tile, and sums per row.
inline constexpr int64_t kTileDepth = 32;  // 16-bit elements per row of a tile.
inline constexpr int64_t kTileLine = 64;   // Bytes per row of a tile.

// The operand of the LDTILECFG instruction: eight full-size tiles.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {kTileLine, kTileLine, kTileLine, kTileLine,
                        kTileLine, kTileLine, kTileLine, kTileLine};
  uint8_t rows[16] = {kTileSide, kTileSide, kTileSide, kTileSide,
                      kTileSide, kTileSide, kTileSide, kTileSide};
};

// The asm statement forces the whole struct into memory: g++ assumes that _tile_loadconfig reads
// only its first word and may drop the other stores.
OPMUX_TILES inline void use_tiles(const TileShapes& shapes) {
  asm volatile("" ::"m"(shapes));
  _tile_loadconfig(&shapes);
}

// Asks Linux for permission to use the tile registers. The kernel grants it for the rest of the
// process.
inline int32_t tiles_are_lent(opmux_error* why) {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  if (granted) return OPMUX_OK;
  return plugin::decline(why, "simd.tiles", "the system does not let this process use AMX tiles");
}

}  // namespace opmux::backends::simd
