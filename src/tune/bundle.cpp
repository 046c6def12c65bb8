#include "tune/bundle.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "tune/bundle_format.hpp"

namespace opmux::tune {
namespace {

using Bytes = std::span<const std::byte>;

Status wrong_bundle(std::string_view why) {
  return {Code::invalid_argument, "tune.bundle", base::concat("the tuning bundle ", why)};
}

/// Copies a structure out of the bytes, which may be at any address.
template <class T>
T take(Bytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string text_of_digest(const format::Digest& digest) {
  return base::hex(std::as_bytes(std::span(digest)));
}

/// The strings of a header or section; texts are offsets into it.
class Strings {
 public:
  /// Valid only if good(): empty, or with a zero at the end.
  explicit Strings(Bytes bytes)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}
  bool good() const { return text_.empty() || text_.back() == '\0'; }

  /// Nullopt if the offset is beyond the strings.
  std::optional<std::string_view> at(uint32_t offset) const {
    if (offset >= text_.size()) return {};
    return std::string_view(text_.data() + offset);
  }

 private:
  std::string_view text_;
};

/// Reads texts one after the other and remembers whether one was beyond the strings.
class TextReader {
 public:
  explicit TextReader(const Strings& strings) : strings_(strings) {}
  std::string operator()(uint32_t offset) {
    const auto text = strings_.at(offset);
    if (!text) good_ = false;
    return std::string(text.value_or(""));
  }
  bool good() const { return good_; }

 private:
  const Strings& strings_;
  bool good_ = true;
};

std::string digest_of_header(Bytes header) {
  std::vector<std::byte> copy(header.begin(), header.end());
  std::fill_n(copy.begin() + offsetof(format::Header, digest), sizeof(format::Digest),
              std::byte{0});
  return base::sha256_hex(copy);
}

/// False if a number of the row is impossible.
bool is_possible(const format::Row& row) {
  const int32_t largest = to_units(kLargestLogRatio);
  return row.first <= row.last && row.low <= row.log_ratio && row.log_ratio <= row.high &&
         row.low >= -largest && row.high <= largest && row.day <= kLastDay &&
         row.rigor <= static_cast<uint8_t>(Rigor::confirmed);
}

bool is_build(const Build& build) {
  return !build.id.empty() && is_word(build.id) && build.id.find('@') == build.id.npos &&
         is_word(build.build);
}

/// False if `opmux tune export` could not write the row so that it is read back as the same one.
bool has_text(const TuningRow& row) {
  const bool any = row.range.dim.empty();
  return is_word(row.range.dim) && row.range.dim.find('=') == row.range.dim.npos &&
         (!any || row.range == Range()) && is_build(row.implementation) && is_build(row.baseline) &&
         is_word(row.tool);
}

std::optional<TuningRow> read_row(const format::Row& stored, const Strings& strings) {
  TextReader text(strings);
  Result<Cell> cell = read_cell(text(stored.cell));
  if (!cell || !is_possible(stored)) return {};
  TuningRow row;
  row.cell = std::move(*cell);
  row.range = {text(stored.dim), stored.first, stored.last};
  row.implementation = {text(stored.implementation), text(stored.build)};
  row.baseline = {text(stored.baseline), text(stored.baseline_build)};
  row.log_ratio = from_units(stored.log_ratio);
  row.low = from_units(stored.low);
  row.high = from_units(stored.high);
  row.rounds = stored.rounds;
  row.rigor = static_cast<Rigor>(stored.rigor);
  row.day = stored.day;
  row.tool = text(stored.tool);
  row.host = stored.host;
  if (!text.good() || !has_text(row)) return {};
  return row;
}

}  // namespace

Result<Bundle> Bundle::open(Bytes bytes) {
  Result<Bundle> bundle = open_header(bytes, bytes.size());
  if (!bundle) return bundle;
  for (Section& section : bundle->sections_)
    section.bytes = bytes.subspan(section.offset, section.size);
  return bundle;
}

Result<Bundle> Bundle::open_header(Bytes bytes, uint64_t file_size) {
  if (!base::has_signatures()) {
    return Status(Code::unsupported, "tune.unsupported",
                  "this opmux was built without libsodium, so it cannot check tuning bundles");
  }
  if (bytes.size() < sizeof(format::Header)) return wrong_bundle("is shorter than a header");
  const auto header = take<format::Header>(bytes, 0);
  if (header.magic != format::kMagic) return wrong_bundle("does not start with OPMUXTUN");
  if (header.version != format::kVersion) {
    return wrong_bundle(base::concat("has version ", header.version, "; this opmux reads version ",
                                     format::kVersion));
  }
  if (header.file_size != file_size) return wrong_bundle("is truncated or has bytes added");
  if (header.header_size > format::kMostHeaderBytes || header.header_size > bytes.size())
    return wrong_bundle("has a header of an impossible size");
  const uint64_t machines_at = sizeof header;
  const uint64_t sections_at =
      machines_at + uint64_t{header.machines} * sizeof(format::MachineEntry);
  const uint64_t strings_at =
      sections_at + uint64_t{header.sections} * sizeof(format::SectionEntry);
  if (strings_at + header.strings_size != header.header_size)
    return wrong_bundle("has a header whose parts do not fill it");
  const Bytes whole_header = bytes.first(header.header_size);
  const Strings strings(whole_header.subspan(strings_at));
  if (!strings.good()) return wrong_bundle("has a header with a text that does not end");
  if (digest_of_header(whole_header) != text_of_digest(header.digest))
    return wrong_bundle("is damaged: the digest of its header does not match");

  Bundle bundle;
  bundle.measurement_ = header.measurement;
  bundle.digest_ = text_of_digest(header.digest);
  TextReader text(strings);
  for (uint32_t i = 0; i < header.machines; ++i) {
    const auto entry =
        take<format::MachineEntry>(bytes, machines_at + i * sizeof(format::MachineEntry));
    bundle.machines_.push_back({text(entry.hard), text(entry.soft)});
    if (const Machine& machine = bundle.machines_.back();
        !is_line(machine.hard) || !is_line(machine.soft))
      return wrong_bundle(
          base::concat("describes a machine by a text that no export can have, number ", i));
  }
  for (uint32_t i = 0; i < header.sections; ++i) {
    const auto entry =
        take<format::SectionEntry>(bytes, sections_at + i * sizeof(format::SectionEntry));
    const uint64_t size = uint64_t{entry.rows} * sizeof(format::Row) + entry.strings_size;
    if (entry.machine >= header.machines || entry.offset < header.header_size ||
        entry.offset > file_size || size > file_size - entry.offset)
      return wrong_bundle(base::concat("has a section outside of the file, number ", i));
    std::string op = text(entry.op);
    if (op.empty() || !is_word(op))
      return wrong_bundle(base::concat("names no operator in section ", i));
    bundle.sections_.push_back({std::move(op), entry.schema_hash, entry.machine, entry.rows,
                                entry.offset, size, Bytes(), text_of_digest(entry.digest)});
  }
  if (!text.good()) return wrong_bundle("has a header with a text outside of it");
  return bundle;
}

Result<std::vector<TuningRow>> Bundle::rows(const Section& section) {
  return rows(section, section.bytes);
}

Result<std::vector<TuningRow>> Bundle::rows(const Section& section, Bytes bytes) {
  const auto wrong = [&](std::string_view why) {
    return Status(Code::invalid_argument, "tune.section",
                  base::concat("the rows of ", section.op, " in the tuning bundle ", why));
  };
  if (bytes.size() != section.size || base::sha256_hex(bytes) != section.digest)
    return wrong("are damaged: their digest does not match");
  const Strings strings(bytes.subspan(size_t{section.rows} * sizeof(format::Row)));
  if (!strings.good()) return wrong("have a text that does not end");
  std::vector<TuningRow> rows;
  rows.reserve(section.rows);
  for (uint32_t i = 0; i < section.rows; ++i) {
    auto row = read_row(take<format::Row>(bytes, i * sizeof(format::Row)), strings);
    if (!row) return wrong(base::concat("have a malformed row, number ", i));
    if (!rows.empty() && !row_before(rows.back(), *row))
      return wrong(base::concat("are not in order at number ", i));
    rows.push_back(std::move(*row));
  }
  return rows;
}

Result<TuningSet> Bundle::read_all() const {
  TuningSet set{measurement_, machines_, {}};
  for (const Section& section : sections_) {
    Result<std::vector<TuningRow>> found = rows(section);
    if (!found) return found.error();
    set.operators.push_back({section.op, section.schema_hash, section.machine, std::move(*found)});
  }
  return set;
}

}  // namespace opmux::tune
