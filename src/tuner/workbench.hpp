#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "tune/machine.hpp"
#include "tune/tuning_row.hpp"
#include "tuner/measured_point.hpp"

struct sqlite3;

namespace opmux::tuner {

/// The call and the machine that a point is about. A point holds for these builds of the
/// implementations that took part, and for the rules by which opmux measures.
struct PointKey {
  tune::Machine machine;
  std::string op;
  uint64_t schema_hash = 0;
  tune::Cell cell;
  std::string dim;    ///< that varies; may be empty
  int64_t value = 0;  ///< its value
  std::vector<tune::Build> candidates;
};

/// The points that were measured on this machine, in an SQLite database on a local disk. Each point
/// is committed before keep() returns, so that a tuner that is killed loses only the race that was
/// running. Move-only. One process at a time writes; the command holds a lock for that.
class Workbench {
 public:
  /// Opens the database, or creates it with access for this user alone. Fails with
  /// "tune.workbench" if it cannot be opened, is damaged or was made by another version.
  static Result<Workbench> open(const std::string& path);

  /// Replaces the point of this key. Fails with "tune.workbench", for example if the disk is full;
  /// the points that were kept before are intact then.
  Status keep(const PointKey& key, const MeasuredPoint& point);
  /// The point of this key, if there is one. A point that cannot be read counts as absent. Fails
  /// with "tune.workbench".
  Result<std::optional<MeasuredPoint>> find(const PointKey& key) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Workbench(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  Status failed(const std::string& what) const;
  Status run(const char* statement);

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace opmux::tuner
