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

/// "gemm.tile_n(Device) -> int": a typed question in shared code.
struct PointSignature {
  std::string name;
  std::vector<PointType> parameters;
  PointType answer = PointType::integer;

  std::string canonical() const;
  friend bool operator==(const PointSignature&, const PointSignature&) = default;
};

/// Types: int, float, bool, str, Device. Reasons "point.syntax", "point.type".
Result<PointSignature> parse_point_signature(std::string_view text);

/// Answers, or returns false for "no answer".
using PointFunction = std::function<bool(const opmux_arg* args, uint32_t count, opmux_arg& answer)>;

struct PointAnswerDraft {
  std::string signature;
  PointFunction answer;
};

/// Who answers a point, and how.
struct PointAnswer {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const PointFunction> function;
};

/// A declared point with all answers; the first whose backend is available, enabled and not denied
/// answers.
struct PointRecord {
  PointSignature signature;
  std::vector<PointAnswer> answers;  ///< by backend priority, highest first, then name bytewise

  /// Puts an answer in its place; false if its backend has one already.
  bool insert(PointAnswer answer);
};

/// A plugin's answer to a point that nobody declared yet.
struct UnclaimedAnswer {
  PointSignature signature;
  PointAnswer answer;
};

}  // namespace opmux::registry
