#include "tune/row_index.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/line_records.hpp"
#include "base/text.hpp"
#include "schema/dtype.hpp"

namespace opmux::tune {
namespace {

using schema::Fact;
using schema::FactKind;

/// Rows of a cell beyond this are stale, because every bound of a range may cut the other ranges.
constexpr size_t kMostRowsOfCell = 1024;

/// Rows of this kernel and microcode come first, because they correct aged ones; then the more
/// careful row, the place of its bundle, and the day.
auto rank_of(const HeldRow& row, const std::vector<RowOrigin>& origins) {
  const RowOrigin& origin = origins[row.origin];
  return std::tuple(origin.aged, -static_cast<int>(row.rigor), origin.place,
                    -static_cast<int64_t>(row.day), row.origin);
}

/// The codes of a list such as "f32,f32,bf16"; nullopt if one is unknown.
std::optional<std::vector<int64_t>> types_of(std::string_view text) {
  std::vector<int64_t> types;
  while (!text.empty()) {
    const DType dtype = parse_dtype(base::take_until(text, ','));
    if (dtype.bits == 0) return {};
    types.push_back(dtype.packed());
  }
  return types;
}

bool is_in_host_memory(int64_t device) {
  return device == schema::kAbsent || (device & 0xFFFF) == OPMUX_DEVICE_CPU;
}

}  // namespace

std::string_view place_name(Place place) {
  switch (place) {
    case Place::local: return "local";
    case Place::fleet: return "OPMUX_TUNING";
    case Place::shipped: return "shipped";
    case Place::online: return "online";
  }
  return "unknown";
}

bool is_batch(std::string_view dim) { return dim == "rows" || dim == "M" || dim == "B"; }

RowCounts& RowCounts::operator+=(const RowCounts& other) {
  used += other.used;
  aged += other.aged;
  foreign += other.foreign;
  stale += other.stale;
  damaged += other.damaged;
  return *this;
}

/// Compiles the rows of one operator.
class RowIndex::Builder {
 public:
  explicit Builder(const registry::OperatorRecord& op)
      : op_(op), made_(new RowIndex), index_(*made_) {}

  std::shared_ptr<const RowIndex> compile(std::span<Section> sections, const RowCounts& missed) {
    index_.counts_ = missed;
    for (Section& section : sections) {
      add(section);
      index_.counts_ += section.counts;
    }
    if (!cells_.empty()) {
      name_facts();
      for (const auto& [shape, cells] : by_shape()) add_family(shape, cells);
    }
    return std::move(made_);
  }

 private:
  /// A row of the bundles, which outlive the builder.
  struct Source {
    const TuningRow* row;
    uint32_t origin, implementation, baseline;
  };
  /// The names of the fixed dimensions, and of the one that varies.
  using Shape = std::pair<std::vector<std::string>, std::string>;
  struct ShapeBefore {
    bool operator()(const Shape& a, const Shape& b) const {
      if (a.first.size() != b.first.size()) return a.first.size() > b.first.size();
      return a < b;
    }
  };
  struct CellRows {
    const Cell* cell;
    int64_t types;
    const std::vector<Source>* rows;
  };

  void add(Section& section) {
    const auto origin = static_cast<uint32_t>(index_.origins_.size());
    index_.origins_.push_back(section.origin);
    for (const TuningRow& row : *section.rows) {
      if (!add(row, origin)) {
        ++section.counts.stale;
        continue;
      }
      ++section.counts.used;
      section.counts.aged += section.origin.aged ? 1 : 0;
    }
  }

  bool add(const TuningRow& row, uint32_t origin) {
    const auto* const implementation = loaded(row.implementation);
    const auto* const baseline = loaded(row.baseline);
    if (op_.schema->opaque || implementation == nullptr || baseline == nullptr ||
        implementation == baseline || !types_of(row.cell.dtypes))
      return false;
    if (!row.range.dim.empty() && !dim_of(row.range.dim)) return false;
    for (const auto& [dim, size] : row.cell.dims) {
      if (!dim_of(dim)) return false;
    }
    std::vector<Source>& rows = cells_[{row.cell, row.range.dim}];
    if (rows.size() == kMostRowsOfCell) return false;
    rows.push_back({&row, origin, implementation->number, baseline->number});
    return true;
  }

  /// The registered implementation; null if there is none of that id or it has another build.
  const registry::ImplementationRecord* loaded(const Build& build) const {
    const std::string id = base::concat(op_.schema->name, "/", build.id);
    for (const auto& each : op_.implementations) {
      if (each->id == id) return each->build_id == build.build ? each.get() : nullptr;
    }
    return nullptr;
  }

  std::optional<Fact> dim_of(std::string_view name) const {
    return resolve_fact(*op_.schema, FactKind::dim, name);
  }

  void name_facts() {
    std::vector<Fact> facts;
    for (const FactKind kind : {FactKind::dtype, FactKind::device}) {
      for (size_t i = 0; i < op_.schema->args.size(); ++i) {
        if (op_.schema->args[i].is_tensor()) facts.push_back({kind, static_cast<uint8_t>(i)});
      }
    }
    index_.tensors_ = facts.size() / 2;
    index_.threads_at_ = facts.size();
    facts.push_back({FactKind::threads, 0});
    const auto ambient = [&](std::string_view name, size_t& at) {
      at = facts.size();
      facts.push_back(*resolve_fact(*op_.schema, FactKind::ambient, name));
    };
    ambient("capturing", index_.capturing_at_);
    ambient("deterministic", index_.deterministic_at_);
    const auto add_dim = [&](const std::string& name) {
      if (name.empty() || positions_.contains(name)) return;
      positions_[name] = static_cast<uint16_t>(facts.size());
      facts.push_back(*dim_of(name));
    };
    for (const auto& [key, rows] : cells_) {
      for (const auto& [dim, size] : key.first.dims) add_dim(dim);
      add_dim(key.second);
    }
    index_.set_facts(std::move(facts));
  }

  /// The cells by shape, those with the most fixed dimensions first.
  std::map<Shape, std::vector<CellRows>, ShapeBefore> by_shape() {
    std::map<Shape, std::vector<CellRows>, ShapeBefore> shapes;
    for (const auto& [key, rows] : cells_) {
      Shape shape{{}, key.second};
      for (const auto& [dim, size] : key.first.dims) shape.first.push_back(dim);
      shapes[std::move(shape)].push_back({&key.first, number_of_types(key.first.dtypes), &rows});
    }
    return shapes;
  }

  int64_t number_of_types(std::string_view text) {
    std::vector<int64_t> types = *types_of(text);
    const auto known = std::ranges::find(index_.types_, types);
    if (known != index_.types_.end()) return known - index_.types_.begin();
    index_.types_.push_back(std::move(types));
    return static_cast<int64_t>(index_.types_.size()) - 1;
  }

  static std::vector<int64_t> key_of(const CellRows& cell) {
    std::vector<int64_t> key{cell.types, cell.cell->threads, cell.cell->captured ? 1 : 0};
    for (const auto& [dim, size] : cell.cell->dims) key.push_back(size);
    return key;
  }

  void add_family(const Shape& shape, std::vector<CellRows> cells) {
    Family& family = index_.families_.emplace_back();
    for (const std::string& dim : shape.first) family.fixed.push_back(positions_.at(dim));
    if (!shape.second.empty()) family.varying = positions_.at(shape.second);
    family.of_batch = is_batch(shape.second) || std::ranges::any_of(shape.first, is_batch);
    family.width = 3 + family.fixed.size();
    std::ranges::sort(cells, {}, key_of);
    for (const CellRows& cell : cells) {
      const std::vector<int64_t> key = key_of(cell);
      family.keys.insert(family.keys.end(), key.begin(), key.end());
      family.segments.push_back(static_cast<uint32_t>(index_.segments_.size()));
      index_.cells_.push_back({*cell.cell, shape.second});
      add_segments(*cell.rows);
    }
    family.segments.push_back(static_cast<uint32_t>(index_.segments_.size()));
  }

  /// Divides the values at each bound of a range.
  void add_segments(const std::vector<Source>& rows) {
    std::vector<int64_t> starts;
    for (const Source& each : rows) {
      starts.push_back(each.row->range.first);
      if (each.row->range.last != INT64_MAX) starts.push_back(each.row->range.last + 1);
    }
    std::ranges::sort(starts);
    const auto repeated = std::ranges::unique(starts);
    starts.erase(repeated.begin(), repeated.end());
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : INT64_MAX;
      add_segment(rows, starts[i], last);
    }
  }

  void add_segment(const std::vector<Source>& rows, int64_t first, int64_t last) {
    const auto cell = static_cast<uint32_t>(index_.cells_.size() - 1);
    const auto begin = static_cast<uint32_t>(index_.rows_.size());
    std::vector<HeldRow> held;
    for (const Source& each : rows) {
      if (each.row->range.contains(first)) held.push_back(held_row(each, cell));
    }
    if (held.empty()) return;
    std::ranges::sort(held, {}, [&](const HeldRow& row) { return rank_of(row, index_.origins_); });
    for (const HeldRow& row : held) {
      // Of several rows about the same two implementations the first counts.
      const bool known =
          std::any_of(index_.rows_.begin() + begin, index_.rows_.end(), [&](const HeldRow& other) {
            return other.implementation == row.implementation && other.baseline == row.baseline;
          });
      if (!known) index_.rows_.push_back(row);
    }
    index_.segments_.push_back(
        {first, last, cell, begin, static_cast<uint32_t>(index_.rows_.size())});
  }

  static HeldRow held_row(const Source& source, uint32_t cell) {
    const TuningRow& row = *source.row;
    return {source.implementation,
            source.baseline,
            cell,
            source.origin,
            row.range.first,
            row.range.last,
            {row.log_ratio, row.low, row.high},
            row.rounds,
            row.day,
            row.rigor};
  }

  const registry::OperatorRecord& op_;
  std::shared_ptr<RowIndex> made_;
  RowIndex& index_;
  std::map<std::pair<Cell, std::string>, std::vector<Source>> cells_;
  std::map<std::string, uint16_t> positions_;  ///< of dimensions among the facts
};

std::shared_ptr<const RowIndex> RowIndex::compile(const registry::OperatorRecord& op,
                                                  std::span<Section> sections,
                                                  const RowCounts& missed) {
  return Builder(op).compile(sections, missed);
}

void RowIndex::add_dependencies(const std::shared_ptr<const RowIndex>& index,
                                schema::Dependencies& into) {
  if (index->empty()) return;
  into.add(index);
  // Plans compare these facts anyway. With their values in the key, the description of a class
  // needs only the dimensions.
  const std::vector<Fact>& facts = index->facts();
  for (size_t i = 0; i < index->tensors_; ++i) into.add(facts[i]);
  for (const size_t at : {index->threads_at_, index->capturing_at_, index->deterministic_at_})
    into.add(facts[at]);
}

std::span<const HeldRow> RowIndex::rows(uint32_t answer) const {
  if (answer == 0) return {};
  const Segment& segment = segments_[answer - 1];
  return std::span(rows_).subspan(segment.rows_begin, segment.rows_end - segment.rows_begin);
}

uint32_t RowIndex::segment_in(const Family& family, std::span<const int64_t> values,
                              int64_t types) const {
  std::array<int64_t, 3 + kMostFacts> key;
  key[0] = types;
  key[1] = values[threads_at_];
  key[2] = values[capturing_at_];
  for (size_t i = 0; i < family.fixed.size(); ++i) key[3 + i] = values[family.fixed[i]];
  const auto wanted = std::span(key).first(family.width);
  const auto cell_at = [&](size_t cell) {
    return std::span(family.keys).subspan(cell * family.width, family.width);
  };
  size_t low = 0, high = family.segments.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (std::ranges::lexicographical_compare(cell_at(middle), wanted))
      low = middle + 1;
    else
      high = middle;
  }
  if (low + 1 == family.segments.size() || !std::ranges::equal(cell_at(low), wanted)) return 0;
  const auto begin = segments_.begin() + family.segments[low];
  const auto end = segments_.begin() + family.segments[low + 1];
  if (!family.varying)
    return begin == end ? 0 : static_cast<uint32_t>(begin - segments_.begin()) + 1;
  const int64_t value = values[*family.varying];
  const auto after = std::upper_bound(
      begin, end, value, [](int64_t v, const Segment& segment) { return v < segment.first; });
  if (after == begin || value > (after - 1)->last) return 0;
  return static_cast<uint32_t>(after - segments_.begin());
}

uint32_t RowIndex::answer_for(std::span<const int64_t> values) const {
  std::array<int64_t, kMostFacts> types;
  size_t count = 0;
  for (size_t i = 0; i < tensors_; ++i) {
    if (!is_in_host_memory(values[tensors_ + i])) return 0;
    if (values[i] != schema::kAbsent) types[count++] = values[i];
  }
  const auto known = std::ranges::find_if(types_, [&](const std::vector<int64_t>& each) {
    return std::ranges::equal(each, std::span(types).first(count));
  });
  if (known == types_.end()) return 0;
  const bool deterministic = values[deterministic_at_] != 0;
  for (const Family& family : families_) {
    if (deterministic && family.of_batch) continue;
    const uint32_t found = segment_in(family, values, known - types_.begin());
    if (found != 0) return found;
  }
  return 0;
}

RowIndex::Comparison RowIndex::compare(uint32_t answer,
                                       std::span<const uint32_t> candidates) const {
  const std::span<const HeldRow> all = rows(answer);
  const auto compared_with = [&](uint32_t baseline) {
    Comparison made{baseline, {}, {}};
    for (const uint32_t candidate : candidates) {
      const auto row = std::ranges::find_if(all, [&](const HeldRow& each) {
        return each.baseline == baseline && each.implementation == candidate;
      });
      made.rows.push_back(row == all.end() ? nullptr : &*row);
      made.speeds.push_back(candidate == baseline ? std::optional(MeasuredSpeed())
                            : row == all.end()    ? std::nullopt
                                                  : std::optional(row->speed));
    }
    return made;
  };
  std::vector<uint32_t> tried;
  // The most careful rows come first, so that theirs is the first baseline.
  for (const HeldRow& row : all) {
    if (std::ranges::find(tried, row.baseline) != tried.end()) continue;
    tried.push_back(row.baseline);
    Comparison made = compared_with(row.baseline);
    const auto others =
        std::ranges::count_if(made.speeds, [](const auto& speed) { return speed.has_value(); });
    if (made.speeds.front() && others > 1) return made;
  }
  return {};
}

std::vector<schema::Predicate> RowIndex::describe(uint32_t answer) const {
  std::vector<schema::Predicate> all;
  if (answer == 0) return all;
  const Segment& segment = segments_[answer - 1];
  const auto family = std::ranges::find_if(families_, [&](const Family& each) {
    return answer - 1 >= each.segments.front() && answer - 1 < each.segments.back();
  });
  const Cell& cell = cells_[segment.cell].cell;
  for (size_t i = 0; i < family->fixed.size(); ++i) {
    all.push_back({facts()[family->fixed[i]], schema::Relation::equals, cell.dims[i].second});
  }
  if (!family->varying) return all;
  const Fact dim = facts()[*family->varying];
  all.push_back({dim, schema::Relation::at_least, segment.first});
  if (segment.last != INT64_MAX) all.push_back({dim, schema::Relation::at_most, segment.last});
  return all;
}

}  // namespace opmux::tune
