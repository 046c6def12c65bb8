#include "dispatch/sample/cell_sketch.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace opmux::dispatch {
namespace {

bool is_on_host(const TensorView& tensor) { return tensor.device().type == OPMUX_DEVICE_CPU; }

}  // namespace

void CellSketch::add(const schema::Signature& signature, uint64_t calls, uint64_t took_ns) {
  const schema::Arguments& arguments = *signature.arguments;
  SampledCell cell;
  for (uint32_t i = 0; i < arguments.count; ++i) {
    const TensorView* const tensor =
        arguments.tags[i] == ArgTag::tensor ? arguments.values[i].tensor : nullptr;
    const bool present = tensor != nullptr && tensor->present();
    if (present && !is_on_host(*tensor)) return;
    cell.types.push_back(present ? int64_t{tensor->dtype().packed()} : schema::kAbsent);
  }
  for (size_t i = 0; i < signature.schema->dims.size(); ++i)
    cell.dims.push_back(schema::dim_value(*signature.dims, static_cast<uint8_t>(i)));
  cell.dims.push_back(schema::dim_value(*signature.dims, schema::kRowsDim));
  cell.threads = signature.threads;
  const uint64_t time_ns = calls * took_ns;

  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto known = std::ranges::find_if(cells_, [&](const SampledCell& one) {
    return one.threads == cell.threads && one.dims == cell.dims && one.types == cell.types;
  });
  if (known != cells_.end()) {
    known->calls += calls;
    known->time_ns += time_ns;
    return;
  }
  cell.calls = calls;
  cell.time_ns = time_ns;
  if (cells_.size() < kMost) {
    cells_.push_back(std::move(cell));
    return;
  }
  // The new cell takes the place of the lightest one, whose time it may have had as well.
  SampledCell& lightest = *std::ranges::min_element(cells_, {}, &SampledCell::time_ns);
  cell.error_ns = lightest.time_ns;
  cell.time_ns += lightest.time_ns;
  lightest = std::move(cell);
}

std::vector<SampledCell> CellSketch::cells() const {
  const std::lock_guard lock(mutex_);
  return cells_;
}

void CellSketch::clear() {
  const std::lock_guard lock(mutex_);
  cells_.clear();
}

void CallSampling::make_sketch() {
  if (sketch_ == nullptr) sketch_ = std::make_unique<CellSketch>();
}

void CallSampling::open_for_all() {
  make_sketch();
  sketch_->clear();
  calls_each_.store(1, std::memory_order_relaxed);
  left_.store(kAll, std::memory_order_release);
}

void CallSampling::close() { left_.store(0, std::memory_order_relaxed); }

bool CallSampling::open(uint64_t calls) {
  if (left_.load(std::memory_order_relaxed) != 0 || calls <= calls_before_) return false;
  make_sketch();
  calls_each_.store(std::max<uint64_t>((calls - calls_before_) / kWindow, 1),
                    std::memory_order_relaxed);
  calls_before_ = calls;
  left_.store(kWindow, std::memory_order_release);
  return true;
}

bool CallSampling::take() {
  uint32_t left = left_.load(std::memory_order_acquire);
  while (left != 0) {
    if (left == kAll) return true;
    if (left_.compare_exchange_weak(left, left - 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void CallSampling::add(const schema::Signature& signature, uint64_t took_ns) {
  sketch_->add(signature, calls_each_.load(std::memory_order_relaxed), took_ns);
}

std::vector<SampledCell> CallSampling::cells() const {
  return sketch_ == nullptr ? std::vector<SampledCell>() : sketch_->cells();
}

}  // namespace opmux::dispatch
