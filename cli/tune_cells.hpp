#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opmux/opmux.hpp>

#include "tuner/measure/cell_spec.hpp"

namespace CLI {
class App;
}

namespace opmux::cli {

/// A cell to measure, and the words of the command line that name it to a worker.
struct AskedCell {
  tuner::CellSpec spec;
  std::vector<std::string> words;  ///< without those of the dimension that varies
};

/// Cells that the command found without `--op`.
struct FoundCells {
  std::vector<AskedCell> cells;
  uint32_t threads = 0;  ///< of all of them
  std::string note;      ///< cells that were left out, and why; empty if none was
  /// Implementations of their operators that only the process has which was sampled.
  std::vector<std::string> only_there = {};

  /// Adds "2 cells of another kind" to the note, unless `count` is 0.
  void leave_out(size_t count, std::string_view why);
};

/// The cell of calls with these tensors, "y=f32 x=f32", and these sizes. No dimension varies if the
/// range has no name.
AskedCell cell_of(const Operator& op, std::string_view tensors,
                  std::vector<std::pair<std::string, int64_t>> dims, const tune::Range& range);

/// The options that say what to measure. `--dtype`, `--dim`, `--over` and `--with` belong to the
/// `--op` before them.
class CellOptions {
 public:
  void add_to(CLI::App& command);
  /// The cells that were asked for. Fails with a message for people, also if there are none and
  /// `some` is true.
  Result<std::vector<AskedCell>> read(const Runtime& runtime, bool some) const;

 private:
  Status read_word(const std::string& option, const std::string& word,
                   std::vector<AskedCell>& cells) const;
  Status read_calls(const Runtime& runtime, const std::string& path,
                    std::vector<AskedCell>& cells) const;

  CLI::App* command_ = nullptr;
  std::vector<std::string> ops_, dtypes_, dims_, overs_, with_, calls_;
};

}  // namespace opmux::cli
