#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/abi.h>
#include <opmux/runtime.hpp>

/// Queries about specialization points, which Point of <opmux/typed.hpp> declares and asks: which
/// points a runtime knows, which backends answer them, and which backend wins.
///
///   for (const opmux::PointInfo& point : opmux::list_points(runtime)) {
///     std::cout << point.to_string();
///   }
namespace opmux {

/// A backend that can answer a point.
struct PointCandidate {
  std::string backend;
  std::string plugin;  ///< The plugin that brought it; empty: the program.
  int priority = 0;    ///< Backends are asked from the highest to the lowest.
  /// "chosen": it gave the answer. "no answer": it was asked and has none. "next": it is asked if
  /// those above have no answer. "refused": it is not asked; `code` and `reason` say why.
  std::string verdict;
  std::string code;    ///< "backend.disabled", "backend.unavailable", "policy.denied", ...
  std::string reason;  ///< One sentence for people.
};

/// A specialization point and its answers.
struct PointInfo {
  std::string name;                        ///< "gemm.tile_n"
  std::string signature;                   ///< "gemm.tile_n(Device) -> int"
  bool declared = false;                   ///< False: only a plugin answers it, no code asks it.
  std::vector<PointCandidate> candidates;  ///< In the order in which they are asked.
  std::string answer;                      ///< The value as text, if the point was asked.

  /// One line for the point and one for each candidate.
  OPMUX_API std::string to_string() const;
};

/// All points that code declared or that a plugin answers, sorted by name. Asks each backend
/// whether it is available, and no backend for an answer.
OPMUX_API std::vector<PointInfo> list_points(const Runtime& runtime);

/// One point, by its name or by its signature, which declares it. With as many arguments as the
/// point has parameters, the point is asked as Point::ask() asks it, and `answer` is set if a
/// backend answered.
///
/// Fails with `not_found` ("point.unknown", with the nearest name) if no code or plugin has the
/// point; with `already_exists` ("point.signature") if it is declared with other types; with
/// `invalid_argument` ("point.arguments") for other arguments than its parameters.
OPMUX_API Result<PointInfo> explain_point(Runtime& runtime, std::string_view point,
                                          const opmux_arg* args = nullptr, uint32_t count = 0);

/// points.json: the result of list_points(), or one point.
OPMUX_API std::string to_json(const std::vector<PointInfo>& points);
OPMUX_API std::string to_json(const PointInfo& point);

}  // namespace opmux
