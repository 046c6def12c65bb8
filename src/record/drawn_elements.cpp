#include "record/drawn_elements.hpp"

#include <bit>
#include <cstring>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "record/placed_call.hpp"

namespace opmux::record {
namespace {

uint64_t seed_of(const RecordedArgument& argument) {
  uint64_t seed = 0xcbf29ce484222325u;
  for (const char c : argument.tensor.sha256 + argument.name) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return seed;
}

/// Random number in [-2, 2) from splitmix64, a multiple of 1/32, which every float type can
/// represent.
float next_number(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int64_t>(z >> 57) - 64) / 32;
}

uint16_t half_of(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 1023));
}

void put(std::byte* at, DType dtype, float value) {
  if (dtype == f32) {
    std::memcpy(at, &value, sizeof value);
  } else if (dtype == f64) {
    const double wide = value;
    std::memcpy(at, &wide, sizeof wide);
  } else {
    const auto bits = static_cast<uint16_t>(dtype == bf16 ? std::bit_cast<uint32_t>(value) >> 16
                                                          : uint32_t{half_of(value)});
    std::memcpy(at, &bits, sizeof bits);
  }
}

bool draws(DType dtype) { return dtype == f32 || dtype == f64 || dtype == f16 || dtype == bf16; }

void draw(RecordedArgument& argument) {
  RecordedTensor& tensor = argument.tensor;
  const auto size = static_cast<size_t>(tensor.dtype.size_bytes());
  tensor.bytes.assign(static_cast<size_t>(tensor.elements()) * size, std::byte{0});
  uint64_t state = seed_of(argument);
  for (size_t at = 0; draws(tensor.dtype) && at < tensor.bytes.size(); at += size) {
    put(&tensor.bytes[at], tensor.dtype, next_number(state));
  }
  tensor.contents = Contents::known;
  tensor.sha256 = base::sha256_hex(tensor.bytes);
}

}  // namespace

Result<std::vector<std::string>> draw_missing_elements(Recording& recording) {
  std::vector<std::string> names;
  int64_t left = kMostPlacedBytes;
  for (RecordedArgument& argument : recording.arguments) {
    RecordedTensor& tensor = argument.tensor;
    if (argument.tag != ArgTag::tensor || tensor.contents == Contents::written) continue;
    const int64_t elements = tensor.elements(), size = tensor.dtype.size_bytes();
    if (!tensor.bytes.empty() || elements == 0) continue;
    if (elements > left / size) {
      return Status(
          Code::resource, "replay.size",
          base::concat(argument.name, " has ", elements, " elements, too many to replay the call"));
    }
    left -= elements * size;
    draw(argument);
    names.push_back(argument.name);
  }
  return names;
}

}  // namespace opmux::record
