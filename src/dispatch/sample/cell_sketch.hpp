#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/system/process.hpp"
#include "schema/facts.hpp"

namespace opmux::dispatch {

/// Calls of one operator with the same types, sizes and threads, as sampled calls showed them.
struct SampledCell {
  /// Per argument of the schema: DType::packed() of a tensor that is present, otherwise
  /// schema::kAbsent.
  std::vector<int64_t> types;
  /// Per dimension of the schema, and last that of "rows": its size or schema::kAbsent.
  std::vector<int64_t> dims;
  int32_t threads = 0;
  uint64_t calls = 0;    ///< an estimate: the sampled calls, times the calls that each stands for
  uint64_t time_ns = 0;  ///< of these calls, estimated likewise
  /// At most this much of `time_ns` belongs to cells that had no room.
  uint64_t error_ns = 0;
};

/// The cells of one operator in which most of its time is spent, in fixed memory: a space-saving
/// sketch. Every cell with more than 1/kMost of the time is in it. Thread-safe.
class CellSketch {
 public:
  static constexpr size_t kMost = 64;

  /// Adds a call that took this long and stands for `calls` calls. Ignores the call if another
  /// thread is using the sketch, and one with tensors outside of host memory, of which tuning rows
  /// say nothing. Throws std::bad_alloc.
  void add(const schema::Signature& signature, uint64_t calls, uint64_t took_ns);
  /// Forgets all cells.
  void clear();
  std::vector<SampledCell> cells() const;

 private:
  mutable base::ForkMutex mutex_;
  std::vector<SampledCell> cells_;
};

/// When calls of an operator are sampled: now and then, as many calls in a row as a window has.
/// Calls take the slow path for that, so that the other calls pay nothing. The maintenance opens
/// windows; calls of any thread use them up.
class CallSampling {
 public:
  static constexpr uint32_t kWindow = 32;  ///< calls

  /// Opens a window if calls were made since the last one and that one is used up; `calls` are
  /// those that the operator has made so far. True if the next calls must take the slow path.
  /// Throws std::bad_alloc. One thread at a time calls it.
  bool open(uint64_t calls);
  /// Samples all calls until close(), and forgets the cells of earlier ones. The next calls must
  /// take the slow path. Throws std::bad_alloc. Not at the same time as open().
  void open_for_all();
  /// Ends what open_for_all() began.
  void close();
  /// Whether a call is to be sampled. It must then be passed to add().
  bool take();
  void add(const schema::Signature& signature, uint64_t took_ns);
  std::vector<SampledCell> cells() const;

 private:
  static constexpr uint32_t kAll = UINT32_MAX;

  void make_sketch();

  std::unique_ptr<CellSketch> sketch_;   ///< made by the first open() or open_for_all()
  uint64_t calls_before_ = 0;            ///< at the last open()
  std::atomic<uint64_t> calls_each_{1};  ///< that a sampled call stands for
  /// Calls of the window, or kAll; release: `sketch_` is made.
  std::atomic<uint32_t> left_{0};
};

}  // namespace opmux::dispatch
