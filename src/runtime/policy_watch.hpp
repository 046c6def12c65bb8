#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/debounce.hpp"
#include "config/path_watch.hpp"
#include "config/policy_files.hpp"
#include "runtime/maintenance.hpp"

namespace opmux::runtime {

/// Follows policy files: waits until a burst of changes is over, reads them all, and hands them on
/// if they are not what was read before. What cannot be read is told once.
class PolicyWatch final : public Maintenance::Job {
 public:
  using Files = std::vector<config::FileText>;
  using Reload = std::function<void(Result<Files> files)>;

  /// `seen` is what is in force already.
  PolicyWatch(std::string path, config::PathWatch::Way way, Files seen, Reload reload)
      : path_(path),
        watch_(std::move(path), way),
        seen_(std::move(seen)),
        reload_(std::move(reload)) {}

  uint64_t run(uint64_t now_ns) override;
  int descriptor() const override { return watch_.descriptor(); }

 private:
  void read_again();

  std::string path_;
  config::PathWatch watch_;
  config::Debounce debounce_;
  Files seen_;
  std::string failure_;  ///< told last
  Reload reload_;
  bool started_ = false;
};

}  // namespace opmux::runtime
