#include "buffers.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include <opmux/opmux.h>

namespace opmux::bench {
namespace {

constexpr size_t kAlignment = 64;

int64_t elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Generates the same numbers in every run, with a fast generator because weights have millions of
// elements.
class Numbers {
 public:
  explicit Numbers(const Argument& argument) : argument_(argument) {}

  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(state_ >> 40) / (1 << 24);
    const double at = static_cast<double>(count_++);
    switch (argument_.fill) {
      case Fill::uniform: return 2 * unit - 1;
      case Fill::below: return std::floor(unit * argument_.number);
      case Fill::counting: return at;
      case Fill::value: return argument_.number;
    }
    return 0;
  }

 private:
  const Argument& argument_;
  uint64_t state_ = 1;
  int64_t count_ = 0;
};

template <class Element>
void write(Numbers& numbers, char* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i, to += sizeof(Element)) {
    const auto element = static_cast<Element>(numbers.next());
    std::memcpy(to, &element, sizeof element);
  }
}

void write_bf16(Numbers& numbers, char* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i, to += 2) {
    const auto word = std::bit_cast<uint32_t>(static_cast<float>(numbers.next()));
    const auto half = static_cast<uint16_t>(word >> 16);
    std::memcpy(to, &half, sizeof half);
  }
}

void fill(const Argument& argument, char* to) {
  Numbers numbers(argument);
  const int64_t count = elements(argument.shape);
  if (argument.dtype == f32) write<float>(numbers, to, count);
  if (argument.dtype == bf16) write_bf16(numbers, to, count);
  if (argument.dtype == i64) write<int64_t>(numbers, to, count);
  if (argument.dtype == i32) write<int32_t>(numbers, to, count);
  if (argument.dtype == i8) write<int8_t>(numbers, to, count);
  if (argument.dtype == u8) write<uint8_t>(numbers, to, count);
}

}  // namespace

Buffers::Buffers(Runtime& runtime, const Point& point) {
  for (const Argument& argument : point.arguments) {
    switch (argument.kind) {
      case Argument::Kind::tensor:
        arguments_.push_back(opmux_arg_tensor(&view(argument).c()));
        break;
      case Argument::Kind::constant:
        constants_.push_back(runtime.constant(view(argument)).value());
        arguments_.push_back(constants_.back().argument());
        break;
      case Argument::Kind::boolean:
        arguments_.push_back(opmux_arg_bool(argument.number != 0));
        break;
      case Argument::Kind::absent: arguments_.push_back(opmux_arg_none()); break;
    }
  }
}

const TensorView& Buffers::view(const Argument& argument) {
  Memory& memory = memory_.emplace_back();
  memory.name = argument.name;
  const int64_t bytes = elements(argument.shape) * argument.dtype.size_bytes();
  memory.bytes.resize(static_cast<size_t>(bytes) + kAlignment);
  void* start = memory.bytes.data();
  size_t room = memory.bytes.size();
  std::align(kAlignment, static_cast<size_t>(bytes), start, room);
  fill(argument, static_cast<char*>(start));
  memory.view = TensorView(start, argument.dtype, argument.shape, {});
  return memory.view;
}

void* Buffers::data(std::string_view name) const {
  for (const Memory& memory : memory_) {
    if (memory.name == name) return memory.view.data();
  }
  return nullptr;
}

}  // namespace opmux::bench
