#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dispatch/operator_state.hpp"

namespace opmux::dispatch {

class Engine;

/// One operator of one engine: the word that every call reads, and what it stands for. Its address
/// does not change while the engine lives.
struct alignas(64) OperatorSlot {
  std::atomic<uint64_t> epoch{0};
  uint32_t number = 0;  ///< index of its line in every thread; reused when its engine is gone
  Engine* engine = nullptr;
  std::atomic<OperatorState*> current{nullptr};
  std::shared_ptr<const registry::Schema> schema;
  uint64_t name_hash = 0;
  std::atomic<bool> plugins_wait{false};  ///< that implement it and are not loaded yet

  const std::string& name() const { return schema->name; }

  /// Makes a state the current one; returns the one before. Readers that still see the old epoch
  /// word with the new state look once more, no harm done.
  std::unique_ptr<OperatorState> replace(std::unique_ptr<OperatorState> next);
};

/// Takes and gives back slot numbers, low ones first: threads keep an array of that length.
uint32_t take_slot_number();
void give_back_slot_number(uint32_t number);

}  // namespace opmux::dispatch
