#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/call_site.hpp>
#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux::record {

/// What is known of the elements that a tensor had before the call.
enum class Contents : uint8_t {
  known,      ///< they were read: their digest, and the bytes themselves if that was asked for
  written,    ///< nothing: it is only written
  unknown,    ///< nothing: the call that failed may have written to them
  elsewhere,  ///< nothing: they lie on a device
  large,      ///< nothing: there were too many
};

struct RecordedTensor {
  DType dtype{};
  std::vector<int64_t> shape, strides;  ///< strides in elements
  int64_t alignment = 1;                ///< of the first element, a power of two up to 4096
  Device device{};
  std::string same_as;  ///< an output in the memory of this argument; empty if in its own
  Contents contents = Contents::written;
  std::string sha256;            ///< of the elements, row-major without gaps; if known
  std::vector<std::byte> bytes;  ///< these elements; empty if they were not asked for

  /// Elements that it has; the largest number if that does not fit.
  int64_t elements() const;
};

struct RecordedArgument {
  std::string name;
  ArgTag tag = ArgTag::none;
  RecordedTensor tensor;
  int64_t i64 = 0;  ///< also bool and enum position
  double f64 = 0;
  std::string text;
  std::vector<int64_t> list;
};

/// Where a result was not what the reference has.
struct RecordedElement {
  std::string argument;
  std::vector<int64_t> index;
  double got = 0, expected = 0, allowed = 0;
};

enum class Cause : uint8_t { failed, diverged };

/// One call that went wrong, with all that is needed to make it again.
struct Recording {
  std::string version;  ///< of opmux
  std::string op, schema, implementation, build_id;
  Cause cause = Cause::failed;
  std::string reason;  ///< a word for programs: "call.failed"
  std::string says;    ///< and what the implementation or the check said
  std::optional<RecordedElement> element;
  std::string call_class;   ///< "f32 H<=4096 rows<=32 on cpu:0"
  std::string policy_hash;  ///< 16 hexadecimal digits
  std::string cpu;          ///< features of the machine, by comma
  uint32_t ambient = 0;     ///< bits of registry::kGrad and so on
  int32_t max_threads = 0;
  std::vector<RecordedArgument> arguments;  ///< in the order of the schema

  const RecordedArgument* find(std::string_view argument) const;
  /// Whether the elements of every tensor that is read are in it.
  bool complete() const;
  /// "x=f32[32,4096]{8192,1} weight=none eps=1e-06"
  std::string arguments_text() const;
};

/// Beyond these a file is neither written nor read.
inline constexpr size_t kMostHeaderBytes = size_t{64} << 10;
inline constexpr size_t kMostElementBytes = size_t{32} << 20;
inline constexpr size_t kMostFileBytes = kMostHeaderBytes + kMostElementBytes;

/// The words of a file, by the numbers of their enums.
std::string_view name_of(Cause cause);
std::string_view name_of(Contents contents);

/// A recording as the bytes of a file, as docs/replay.md describes it.
std::string to_file(const Recording& recording);
/// Fails with "replay.file", the name and the line for what is no such file, was changed, or is of
/// another version; with `unsupported` if the library was built without digests.
Result<Recording> parse_file(std::string_view bytes, std::string_view name);
Result<Recording> read_file(const std::string& path);

}  // namespace opmux::record
