#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "registry/backend.hpp"

namespace opmux::registry {

enum class PointType : uint8_t { integer, floating, boolean, string, device };

/// The tag of an opmux_arg that holds a value of this type. A Device is passed as an I64.
constexpr uint32_t tag_of(PointType type) {
  switch (type) {
    case PointType::floating: return OPMUX_ARG_F64;
    case PointType::boolean: return OPMUX_ARG_BOOL;
    case PointType::string: return OPMUX_ARG_STR;
    case PointType::integer:
    case PointType::device: break;
  }
  return OPMUX_ARG_I64;
}

/// Signature of a specialization point, such as "gemm.tile_n(Device) -> int": a typed question that
/// device-independent code asks and backends answer.
struct PointSignature {
  std::string name;
  std::vector<PointType> parameters;
  PointType answer = PointType::integer;

  std::string canonical() const;
  friend bool operator==(const PointSignature&, const PointSignature&) = default;
};

/// The types are int, float, bool, str and Device. Fails with reason "point.syntax" or
/// "point.type".
Result<PointSignature> parse_point_signature(std::string_view text);

/// Writes `answer` and returns true, or returns false for "no answer".
using PointFunction = std::function<bool(const opmux_arg* args, uint32_t count, opmux_arg& answer)>;

struct PointAnswerDraft {
  std::string signature;
  PointFunction answer;
};

/// A backend and its function that answers a point.
struct PointAnswer {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const PointFunction> function;
};

/// A declared point with all answers. A query uses the first answer whose backend is available,
/// enabled and not denied.
struct PointRecord {
  PointSignature signature;
  std::vector<PointAnswer> answers;  ///< by backend priority, highest first, then by name

  /// Inserts an answer in order; returns false if the backend has already answered this point.
  bool insert(PointAnswer answer);
};

/// A plugin's answer to a point that is not declared yet.
struct UnclaimedAnswer {
  PointSignature signature;
  PointAnswer answer;
};

}  // namespace opmux::registry
