#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/operator.hpp>
#include <opmux/status.hpp>

#include "conformance/case.hpp"
#include "conformance/draft.hpp"
#include "tune/tuning_row.hpp"

namespace opmux::tuner {

/// The calls of an operator that a person wants measured.
struct CellSpec {
  std::string op;
  /// "bf16" for all floating-point tensors, "ids=i64" for one argument.
  std::vector<std::string> dtypes = {};
  std::vector<std::pair<std::string, int64_t>> dims =
      {};                                ///< "rows" is the product of those of "..."
  std::optional<tune::Range> over = {};  ///< the dimension that varies
  std::vector<std::string> with = {};    ///< optional tensors that the calls pass

  /// A scalar or the elements of a tensor of a recorded call.
  struct Given {
    std::string name;
    int64_t i64 = 0;
    double f64 = 0;
    std::vector<std::byte> bytes;  ///< row-major without gaps; empty if they are not known
  };
  std::vector<Given> given = {};
};

/// Reads "N=2048,K=2048". Fails with "tune.cell".
Result<std::vector<std::pair<std::string, int64_t>>> read_dims(std::string_view text);
/// Reads "M=1..256". Fails with "tune.cell".
Result<tune::Range> read_over(std::string_view text);

/// The calls of a CellSpec: the cell that rows name, and a case for each value of the dimension
/// that varies.
class CellPlan {
 public:
  /// Fails with "tune.cell" and a message for people if a dimension has no size, or a name or a
  /// type is wrong.
  static Result<CellPlan> make(const Operator& op, const CellSpec& spec, uint32_t threads);

  const Operator& op() const { return op_; }
  const tune::Cell& cell() const { return cell_; }
  /// {"", 0, 0} if no dimension varies.
  const tune::Range& range() const { return range_; }
  /// The call with this value, with elements from the generators of the conformance suite or from
  /// the recording. This object must outlive it.
  conformance::Case call_at(int64_t value) const;
  /// The same call without elements in its inputs; for questions that only need shapes.
  conformance::Case shapes_at(int64_t value) const;

 private:
  CellPlan(Operator op, CellSpec spec) : op_(op), spec_(std::move(spec)) {}
  Status check_names() const;
  Status fill_cell(uint32_t threads);
  void set_tensors(conformance::Draft& draft) const;
  void set_given(conformance::Case& drawn) const;
  conformance::Case draw(int64_t value, uint64_t number, bool with_elements) const;

  Operator op_;
  CellSpec spec_;
  std::vector<ArgumentInfo> infos_;
  tune::Cell cell_;
  tune::Range range_;
};

}  // namespace opmux::tuner
