#include "tuner/workbench.hpp"

#include <fcntl.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/system/files.hpp"
#include "base/text.hpp"
#include "tune/bundle.hpp"

namespace opmux::tuner {
namespace {

constexpr int kVersion = 1;  ///< of the tables, in user_version

constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS point("
    " measurement INTEGER, hard TEXT, soft TEXT, op TEXT, schema INTEGER, cell TEXT, dim TEXT,"
    " value INTEGER, candidates TEXT, result TEXT NOT NULL,"
    " PRIMARY KEY(measurement, hard, soft, op, schema, cell, dim, value, candidates));"
    "PRAGMA user_version = 1";
constexpr const char* kKeep =
    "INSERT OR REPLACE INTO point VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
constexpr const char* kFind =
    "SELECT result FROM point WHERE measurement = ?1 AND hard = ?2 AND soft = ?3 AND op = ?4"
    " AND schema = ?5 AND cell = ?6 AND dim = ?7 AND value = ?8 AND candidates = ?9";

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* database, const char* text) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, text, -1, &statement, nullptr);
  return Statement(statement);
}

void bind_text(sqlite3_stmt* statement, int at, const std::string& text) {
  // -1 as the destructor means that SQLite makes a copy.
  sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()),
                    reinterpret_cast<sqlite3_destructor_type>(-1));  // NOLINT
}

std::string names_of(std::vector<tune::Build> candidates) {
  std::ranges::sort(candidates);
  std::string text;
  for (const tune::Build& one : candidates) text += base::concat(one.id, "@", one.build, " ");
  return text;
}

void bind_key(sqlite3_stmt* statement, const PointKey& key) {
  sqlite3_bind_int64(statement, 1, tune::kMeasurement);
  bind_text(statement, 2, key.machine.hard);
  bind_text(statement, 3, key.machine.soft);
  bind_text(statement, 4, key.op);
  sqlite3_bind_int64(statement, 5, static_cast<int64_t>(key.schema_hash));
  bind_text(statement, 6, tune::text_of(key.cell));
  bind_text(statement, 7, key.dim);
  sqlite3_bind_int64(statement, 8, key.value);
  bind_text(statement, 9, names_of(key.candidates));
}

/// user_version; nullopt if it cannot be read.
std::optional<int> version_of(sqlite3* database) {
  const Statement statement = prepare(database, "PRAGMA user_version");
  if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_ROW) return {};
  return sqlite3_column_int(statement.get(), 0);
}

}  // namespace

void Workbench::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Status Workbench::failed(const std::string& what) const {
  return {Code::resource, "tune.workbench",
          base::concat("cannot ", what, " ", path_, ": ", sqlite3_errmsg(database_.get()))};
}

Status Workbench::run(const char* statement) {
  if (sqlite3_exec(database_.get(), statement, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return failed("prepare");
}

Result<Workbench> Workbench::open(const std::string& path) {
  // SQLite would create the file with access for others.
  const base::Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return Status(Code::resource, "tune.workbench",
                  base::concat("cannot open ", path, ": ", std::strerror(errno)));
  }
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  Workbench workbench(path, database);
  if (opened != SQLITE_OK) return workbench.failed("open");
  const std::optional<int> version = version_of(database);
  if (!version) return workbench.failed("read");
  if (*version != 0 && *version != kVersion) {
    return Status(Code::unsupported, "tune.workbench",
                  base::concat(path, " was made by another version of opmux; remove it"));
  }
  if (Status made = *version == 0 ? workbench.run(kTables) : Status(); !made.ok()) return made;
  return workbench;
}

Status Workbench::keep(const PointKey& key, const MeasuredPoint& point) {
  const Statement statement = prepare(database_.get(), kKeep);
  if (statement == nullptr) return failed("write");
  bind_key(statement.get(), key);
  bind_text(statement.get(), 10, tuner::text_of(point));
  return sqlite3_step(statement.get()) == SQLITE_DONE ? Status() : failed("write");
}

Result<std::optional<MeasuredPoint>> Workbench::find(const PointKey& key) const {
  const Statement statement = prepare(database_.get(), kFind);
  if (statement == nullptr) return failed("read");
  bind_key(statement.get(), key);
  const int stepped = sqlite3_step(statement.get());
  if (stepped == SQLITE_DONE) return std::optional<MeasuredPoint>();
  if (stepped != SQLITE_ROW) return failed("read");
  const auto* const text =
      reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));  // NOLINT
  Result<MeasuredPoint> point = read_point(text == nullptr ? "" : text);
  if (!point) return std::optional<MeasuredPoint>();
  return std::optional<MeasuredPoint>(std::move(*point));
}

}  // namespace opmux::tuner
