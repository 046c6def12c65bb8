#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/debounce.hpp"
#include "config/path_watch.hpp"
#include "config/policy_files.hpp"
#include "runtime/maintenance.hpp"

namespace opmux::runtime {

/// Watches policy files. After a burst of changes it reads all files and reports them if they
/// differ from the last ones. A read error is reported once.
class PolicyWatch final : public Maintenance::Job {
 public:
  using Files = std::vector<config::FileText>;
  using Reload = std::function<void(Result<Files> files)>;

  /// `seen` are the contents that are already in force.
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
  std::string failure_;  ///< the read error that was reported last
  Reload reload_;
  bool started_ = false;
};

}  // namespace opmux::runtime
