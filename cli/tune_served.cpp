#include "cli/tune_served.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/line_records.hpp"
#include "base/text.hpp"

namespace opmux::cli {
namespace {

using Dims = std::vector<std::pair<std::string, int64_t>>;

/// Dimensions that count rows, tokens or requests; of those that an operator has, the first varies.
constexpr std::array<std::string_view, 4> kBatchDims{"M", "rows", "T", "B"};
constexpr double kCovered = 0.98;

/// Calls that differ only in the size of the dimension that varies.
struct Family {
  std::string op, tensors;
  Dims dims = {};  ///< that are fixed
  std::string varies = {};
  int64_t first = 0, last = 0;
  int64_t threads = 0;
  uint64_t time_ns = 0;
};

std::string batch_dim(const Dims& dims) {
  for (const std::string_view name : kBatchDims) {
    if (std::ranges::find(dims, name, &Dims::value_type::first) != dims.end())
      return std::string(name);
  }
  return {};
}

/// "H=8 rows=2" without the dimension that varies, whose size goes to `size`.
bool read_sizes(const CellPageState& cell, Family& family, int64_t& size) {
  std::string text = cell.dims;
  std::ranges::replace(text, ' ', ',');
  auto dims = tuner::read_dims(text);
  if (!dims) return false;
  family.varies = batch_dim(*dims);
  for (auto& [name, value] : *dims) {
    if (name == family.varies) {
      size = value;
    } else {
      family.dims.emplace_back(std::move(name), value);
    }
  }
  return true;
}

std::vector<Family> families_of(const ProcessState& process) {
  std::vector<Family> families;
  for (const RuntimeState& runtime : process.runtimes) {
    for (const CellPageState& cell : runtime.cells) {
      Family one{.op = cell.op, .tensors = cell.tensors, .threads = cell.threads};
      int64_t size = 0;
      if (!read_sizes(cell, one, size)) continue;
      auto at = std::ranges::find_if(families, [&](const Family& known) {
        return known.op == one.op && known.tensors == one.tensors && known.dims == one.dims &&
               known.varies == one.varies && known.threads == one.threads;
      });
      if (at == families.end()) {
        one.first = one.last = size;
        at = families.insert(at, std::move(one));
      }
      at->first = std::min(at->first, size);
      at->last = std::max(at->last, size);
      at->time_ns += cell.time_ns;
    }
  }
  std::ranges::sort(families, [](const Family& a, const Family& b) {
    return std::tie(b.time_ns, a.op, a.tensors, a.dims) <
           std::tie(a.time_ns, b.op, b.tensors, b.dims);
  });
  return families;
}

AskedCell asked(const Family& family, const Operator& op) {
  if (family.first < family.last)
    return cell_of(op, family.tensors, family.dims, {family.varies, family.first, family.last});
  Dims dims = family.dims;
  if (!family.varies.empty()) dims.emplace_back(family.varies, family.first);
  return cell_of(op, family.tensors, std::move(dims), {});
}

/// Adds the implementations of an operator that the process has and this program does not.
void add_only_there(const ProcessState& process, const Runtime& runtime, const std::string& op,
                    std::vector<std::string>& only_there) {
  const std::vector<OperatorInfo> all = runtime.list();
  const auto here = std::ranges::find(all, op, &OperatorInfo::name);
  for (const RuntimeState& state : process.runtimes) {
    for (const OperatorPageState& there : state.operators) {
      if (there.name != op || here == all.end()) continue;
      for (const ImplementationPageState& one : there.implementations) {
        const bool known =
            std::ranges::find(here->implementations, one.id, &ImplementationInfo::id) !=
                here->implementations.end() ||
            std::ranges::find(only_there, one.id) != only_there.end();
        if (!known) only_there.push_back(one.id);
      }
    }
  }
}

}  // namespace

Result<FoundCells> served_cells(const ProcessState& process, const Runtime& runtime,
                                uint32_t threads) {
  const std::vector<Family> families = families_of(process);
  if (families.empty()) {
    return Status(Code::not_found, "tune.cell",
                  base::concat("process ", process.pid,
                               " has no sampled calls yet; calls on the CPU are sampled every two "
                               "seconds"));
  }
  FoundCells served;
  served.threads = threads;
  if (threads == 0)
    served.threads = static_cast<uint32_t>(std::max<int64_t>(families[0].threads, 1));
  uint64_t all_ns = 0, covered_ns = 0;
  for (const Family& family : families) all_ns += family.time_ns;
  size_t other_threads = 0, light = 0, unknown = 0;
  for (const Family& family : families) {
    if (family.threads != static_cast<int64_t>(served.threads)) {
      ++other_threads;
      continue;
    }
    if (static_cast<double>(covered_ns) >= kCovered * static_cast<double>(all_ns)) {
      ++light;
      continue;
    }
    const Result<Operator> op = runtime.op(family.op);
    if (!op) {
      ++unknown;
      continue;
    }
    AskedCell cell = asked(family, *op);
    if (!tuner::CellPlan::make(*op, cell.spec, served.threads)) {
      ++unknown;
      continue;
    }
    covered_ns += family.time_ns;
    add_only_there(process, runtime, family.op, served.only_there);
    served.cells.push_back(std::move(cell));
  }
  served.leave_out(light, "with less than 2 % of the time together");
  served.leave_out(other_threads, base::concat("not with ", served.threads, " threads"));
  served.leave_out(unknown, "that cannot be measured here");
  if (served.cells.empty()) {
    return Status(Code::not_found, "tune.cell",
                  base::concat("process ", process.pid, " has no calls to measure: ", served.note));
  }
  return served;
}

}  // namespace opmux::cli
