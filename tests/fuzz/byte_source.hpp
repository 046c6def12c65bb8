#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace opmux::fuzz {

/// Consumes the fuzzer's input, then returns zeros.
class ByteSource {
 public:
  ByteSource(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  template <class T = uint8_t>
  T take() {
    T value{};
    const size_t size = left_ < sizeof(T) ? left_ : sizeof(T);
    if (size != 0) std::memcpy(&value, data_, size);
    data_ += size;
    left_ -= size;
    return value;
  }
  /// A number from 0 to `choices` - 1.
  uint32_t pick(uint32_t choices) { return take<uint8_t>() % choices; }
  bool rarely() { return take<uint8_t>() >= 0xf0; }

 private:
  const uint8_t* data_;
  size_t left_;
};

}  // namespace opmux::fuzz
