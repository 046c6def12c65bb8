#include "tuner/bundle_writer.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "tune/bundle_format.hpp"

namespace opmux::tuner {
namespace {

namespace format = tune::format;
using tune::OperatorRows;
using tune::TuningRow;

/// Zero-terminated strings, each stored once.
class StringTable {
 public:
  uint32_t add(std::string_view text) {
    const auto [at, is_new] =
        offsets_.try_emplace(std::string(text), static_cast<uint32_t>(bytes_.size()));
    if (is_new) bytes_.append(text).push_back('\0');
    return at->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::map<std::string, uint32_t, std::less<>> offsets_;
  std::string bytes_;
};

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

format::Row stored(const TuningRow& row, StringTable& strings) {
  format::Row out{};
  out.cell = strings.add(text_of(row.cell));
  out.dim = strings.add(row.range.dim);
  out.first = row.range.first;
  out.last = row.range.last;
  out.implementation = strings.add(row.implementation.id);
  out.build = strings.add(row.implementation.build);
  out.baseline = strings.add(row.baseline.id);
  out.baseline_build = strings.add(row.baseline.build);
  out.log_ratio = tune::to_units(row.log_ratio);
  out.low = tune::to_units(row.low);
  out.high = tune::to_units(row.high);
  out.rounds = row.rounds;
  out.day = row.day;
  out.tool = strings.add(row.tool);
  out.host = row.host;
  out.rigor = static_cast<uint8_t>(row.rigor);
  return out;
}

void join_operators(tune::TuningSet& set) {
  const auto key = [](const OperatorRows& one) {
    return std::tie(one.op, one.schema_hash, one.machine);
  };
  std::ranges::sort(set.operators, [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<OperatorRows> joined;
  for (OperatorRows& one : set.operators) {
    if (!joined.empty() && key(joined.back()) == key(one)) {
      std::ranges::move(one.rows, std::back_inserter(joined.back().rows));
    } else {
      joined.push_back(std::move(one));
    }
  }
  for (OperatorRows& one : joined) std::ranges::sort(one.rows, tune::row_before);
  set.operators = std::move(joined);
}

/// Fails if two rows of an operator answer the same question.
Status check_distinct(const OperatorRows& one) {
  const auto twice = std::ranges::adjacent_find(
      one.rows, [](const TuningRow& a, const TuningRow& b) { return !row_before(a, b); });
  if (twice == one.rows.end()) return {};
  return {Code::invalid_argument, "tune.bundle",
          base::concat("two rows of ", one.op, " are about ", twice->implementation.id, " and ",
                       twice->baseline.id, " in the cell '", text_of(twice->cell), "'")};
}

std::string digest_bytes(std::string_view hex) {
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return bytes;
}

/// Writes the digest of a part of the bytes at `at`.
void put_digest(std::string& bytes, size_t at, size_t first, size_t size) {
  const std::string hex = base::sha256_hex(std::as_bytes(std::span(bytes).subspan(first, size)));
  const std::string digest = digest_bytes(hex);
  std::memcpy(bytes.data() + at, digest.data(), digest.size());
}

}  // namespace

void seal_bundle(std::string& bytes) {
  format::Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  const uint64_t sections_at =
      sizeof header + uint64_t{header.machines} * sizeof(format::MachineEntry);
  for (uint64_t i = 0; i < header.sections; ++i) {
    const uint64_t at = sections_at + i * sizeof(format::SectionEntry);
    if (at + sizeof(format::SectionEntry) > bytes.size()) break;
    format::SectionEntry entry;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    const uint64_t size = uint64_t{entry.rows} * sizeof(format::Row) + entry.strings_size;
    if (entry.offset > bytes.size() || size > bytes.size() - entry.offset) continue;
    put_digest(bytes, at + offsetof(format::SectionEntry, digest), entry.offset, size);
  }
  if (header.header_size < sizeof header || header.header_size > bytes.size()) return;
  std::memset(bytes.data() + offsetof(format::Header, digest), 0, sizeof(format::Digest));
  put_digest(bytes, offsetof(format::Header, digest), 0, header.header_size);
}

Result<std::string> write_bundle(tune::TuningSet set) {
  if (!base::has_signatures()) {
    return Status(Code::unsupported, "tune.unsupported",
                  "this opmux was built without libsodium, so it cannot write tuning bundles");
  }
  join_operators(set);
  StringTable strings;
  std::string machines, sections, body;
  for (const tune::Machine& machine : set.machines)
    append(machines, format::MachineEntry{strings.add(machine.hard), strings.add(machine.soft)});
  std::vector<format::SectionEntry> entries;
  for (const OperatorRows& one : set.operators) {
    if (Status distinct = check_distinct(one); !distinct.ok()) return distinct;
    if (one.machine >= set.machines.size()) {
      return Status(Code::invalid_argument, "tune.bundle",
                    base::concat("the rows of ", one.op, " name no machine of the bundle"));
    }
    StringTable texts;
    format::SectionEntry entry{};
    entry.op = strings.add(one.op);
    entry.machine = one.machine;
    entry.schema_hash = one.schema_hash;
    entry.offset = body.size();
    entry.rows = static_cast<uint32_t>(one.rows.size());
    for (const TuningRow& row : one.rows) append(body, stored(row, texts));
    entry.strings_size = static_cast<uint32_t>(texts.bytes().size());
    body += texts.bytes();
    entries.push_back(entry);
  }
  format::Header header{};
  header.magic = format::kMagic;
  header.version = format::kVersion;
  header.measurement = set.measurement;
  header.machines = static_cast<uint32_t>(set.machines.size());
  header.sections = static_cast<uint32_t>(entries.size());
  header.strings_size = static_cast<uint32_t>(strings.bytes().size());
  const size_t header_size = sizeof header + machines.size() +
                             entries.size() * sizeof(format::SectionEntry) + strings.bytes().size();
  if (header_size > format::kMostHeaderBytes) {
    return Status(Code::invalid_argument, "tune.bundle",
                  base::concat("a bundle has a header of at most ", format::kMostHeaderBytes,
                               " bytes, and ", entries.size(),
                               " operators with their machines "
                               "would need ",
                               header_size, "; divide it by machine"));
  }
  header.header_size = static_cast<uint32_t>(header_size);
  header.file_size = header_size + body.size();
  for (format::SectionEntry& entry : entries) {
    entry.offset += header_size;
    append(sections, entry);
  }
  std::string bytes;
  append(bytes, header);
  bytes += machines + sections + strings.bytes() + body;
  seal_bundle(bytes);
  // Texts that the reader refuses, for example a name with a '#', are refused here.
  const Result<tune::Bundle> bundle = tune::Bundle::open(std::as_bytes(std::span(bytes)));
  if (!bundle) return bundle.error();
  if (const Result<tune::TuningSet> again = bundle->read_all(); !again) return again.error();
  return bytes;
}

}  // namespace opmux::tuner
