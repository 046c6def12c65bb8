#pragma once

#include <string>
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
