#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <opmux/detail/call_site.hpp>
#include <opmux/tensor.hpp>

namespace opmux::dispatch {

/// The calls that implementations of an operator declined, for one CompiledOperator: exact hashes
/// of arguments for the slow path, and a filter of shapes, by which a cached plan leaves calls that
/// may have been declined to the slow path. Thread-safe; readers take no lock. Without declines it
/// has no table.
class Declines {
 public:
  static constexpr size_t kMost = 1024;

  Declines() = default;
  ~Declines();
  Declines(const Declines&) = delete;
  Declines& operator=(const Declines&) = delete;

  bool any() const { return table_.load(std::memory_order_relaxed) != nullptr; }

  /// Records that an implementation declined exactly the arguments with these hashes. False if the
  /// table is full.
  bool remember(uint64_t exact_hash, uint64_t shape_hash, uint32_t implementation_number);
  bool has(uint64_t exact_hash, uint32_t implementation_number) const;
  /// False if no call with these shapes was declined.
  bool may_have(uint64_t shape_hash) const {
    const Table* const all = table_.load(std::memory_order_acquire);
    return all != nullptr && (all->shapes[filter_word(shape_hash)].load(std::memory_order_relaxed) &
                              filter_bit(shape_hash)) != 0;
  }

  /// Hash of the shapes of present tensors. add() is called with the position of each.
  class ShapeHash {
   public:
    void add(uint32_t argument, const TensorView& tensor) {
      const uint64_t* weight = &kWeights[argument * size_t{OPMUX_MAX_RANK}];
      for (const int64_t size : tensor.shape()) hash_ += static_cast<uint64_t>(size) * *weight++;
    }
    /// The same for a tensor of rank up to kWords; unused words are zero, as those of an absent
    /// tensor.
    template <int kWords>
    [[gnu::always_inline]] void add_words(uint32_t argument, const int64_t* words) {
      const uint64_t* const weights = &kWeights[argument * size_t{OPMUX_MAX_RANK}];
#pragma GCC unroll 4
      for (int i = 0; i < kWords; ++i) hash_ += static_cast<uint64_t>(words[i]) * weights[i];
    }
    uint64_t value() const { return hash_ * kGolden; }

   private:
    static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    /// An odd number for each dimension of each argument.
    static constexpr auto kWeights = [] {
      std::array<uint64_t, size_t{OPMUX_MAX_ARGS} * OPMUX_MAX_RANK> weights{};
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = (2 * i + 1) * kGolden;
      return weights;
    }();
    uint64_t hash_ = 0;
  };

 private:
  static constexpr size_t kFilterWords = 64;
  struct Table {
    std::array<std::atomic<uint64_t>, kMost> exact{};
    std::array<std::atomic<uint64_t>, kFilterWords> shapes{};
  };
  Table& table();
  /// The highest bits select a word of the filter and a bit in it.
  static size_t filter_word(uint64_t shape_hash) { return shape_hash >> 58; }
  static uint64_t filter_bit(uint64_t shape_hash) { return uint64_t{1} << (shape_hash >> 52 & 63); }

  std::atomic<Table*> table_{nullptr};
};

}  // namespace opmux::dispatch
