#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/detail/call_site.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux::replay {

/// Whether the elements that a tensor had before the call are recorded.
enum class Contents : uint8_t {
  known,      ///< recorded: the digest, and optionally the elements
  written,    ///< not recorded: the tensor is only written
  unknown,    ///< not recorded: the failed call may have overwritten them
  elsewhere,  ///< not recorded: the tensor is not in CPU memory
  large,      ///< not recorded: too many bytes
  result,     ///< recorded: the elements after the call, of a tensor that is only written
};

struct RecordedTensor {
  DType dtype{};
  std::vector<int64_t> shape, strides;  ///< strides in elements
  int64_t alignment = 1;                ///< alignment of the first element; at most 4096
  Device device{};
  std::string same_as;  ///< argument whose memory this output shares; empty if none
  Contents contents = Contents::written;
  std::string sha256;            ///< digest of the elements, row-major without gaps; if known
  std::vector<std::byte> bytes;  ///< the elements; empty if they are not stored

  /// Number of elements; INT64_MAX on overflow.
  int64_t elements() const;
};

struct RecordedArgument {
  std::string name;
  ArgTag tag = ArgTag::none;
  RecordedTensor tensor;
  int64_t i64 = 0;  ///< integer, bool, or index of an enum value
  double f64 = 0;
  std::string text;
  std::vector<int64_t> list;
};

/// The first element of a result that differs from the reference.
struct RecordedElement {
  std::string argument;
  std::vector<int64_t> index;
  double got = 0, expected = 0, allowed = 0;
};

enum class Cause : uint8_t { failed, diverged, dumped };

/// A recorded call, with all data that is needed to replay it.
struct Recording {
  std::string version;  ///< version of opmux that recorded the call
  std::string op, schema, implementation, build_id;
  Cause cause = Cause::failed;
  std::string reason;  ///< reason code: "call.failed"
  std::string says;    ///< error text of the implementation or of the check
  std::optional<RecordedElement> element;
  std::string call_class;   ///< "f32 H<=4096 rows<=32 on cpu:0"
  std::string policy_hash;  ///< 16 hexadecimal digits
  std::string cpu;          ///< CPU features of the machine, comma-separated
  uint32_t ambient = 0;     ///< ambient bits such as registry::kGrad
  int32_t max_threads = 0;
  std::vector<RecordedArgument> arguments;  ///< in the order of the schema

  const RecordedArgument* find(std::string_view argument) const;
  /// Forgets the elements after the call, so that a replay has to compute them.
  void forget_results();
  /// True if the elements of every input tensor are recorded.
  bool complete() const;
  /// Formats the arguments as "x=f32[32,4096]{8192,1} weight=none eps=1e-06".
  std::string arguments_text() const;
};

/// Size limits of replay files.
inline constexpr size_t kMostHeaderBytes = size_t{64} << 10;
inline constexpr size_t kMostElementBytes = size_t{32} << 20;
inline constexpr size_t kMostFileBytes = kMostHeaderBytes + kMostElementBytes;

/// The names of the enum values in a replay file.
std::string_view name_of(Cause cause);
std::string_view name_of(Contents contents);

/// Serializes a recording in the format that docs/replay.md describes.
std::string to_file(const Recording& recording);
/// Parses a replay file. Fails with "replay.file", and the name and line in the message, if the
/// bytes are not a valid replay file, were changed, or have another version. The code is
/// `unsupported` if the library was built without digests.
Result<Recording> parse_file(std::string_view bytes, std::string_view name);
Result<Recording> read_file(const std::string& path);

/// The lowest and highest offset of a strided tensor's elements, relative to its first element.
struct ElementRange {
  int64_t lowest = 0, highest = 0;  ///< in elements
};

/// Computes the range. False on integer overflow.
bool range_of(std::span<const int64_t> shape, std::span<const int64_t> strides,
              ElementRange& range);

/// The strides of a row-major tensor without gaps.
std::vector<int64_t> packed_strides(std::span<const int64_t> shape);

/// Copies elements of `size` bytes, row-major, from a tensor with strides to memory without gaps.
void gather(const std::byte* first, std::span<const int64_t> shape,
            std::span<const int64_t> strides, size_t size, std::byte* packed);
/// Copies the elements back: the inverse of gather().
void scatter(const std::byte* packed, std::span<const int64_t> shape,
             std::span<const int64_t> strides, size_t size, std::byte* first);

/// Returns the elements of a view in CPU memory, row-major without gaps.
std::vector<std::byte> elements_of(const TensorView& view);

}  // namespace opmux::replay
