#include "dispatch/explain_rows.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "base/text.hpp"

namespace opmux::dispatch {
namespace {

template <class... Values>
std::string printed(const char* format, Values... values) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), static_cast<size_t>(size)};
}

std::string date_text(uint32_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return printed("%04d-%02u-%02u", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

/// The id of an implementation by its number; empty if it is not registered.
std::string id_of(const registry::OperatorRecord& op, uint32_t number) {
  for (const auto& each : op.implementations) {
    if (each->number == number) return each->id;
  }
  return {};
}

tune::Verdict verdict_on(const tune::HeldRow& row) {
  return tune::verdict_of(row.speed.log_ratio, row.speed.low, row.speed.high);
}

std::string counted(uint64_t count, std::string_view what) {
  return base::concat(count, count == 1 ? " row " : " rows ", what);
}

/// Whether the first by score keeps its place because the rounds do not tell.
bool is_unclear(const Evaluation& decision) {
  bool unclear = false;
  for (const uint16_t index : decision.order) {
    const CandidateVerdict& verdict = decision.verdicts[index];
    if (verdict.tuned) return false;
    unclear |= verdict.row != nullptr && verdict_on(*verdict.row) == tune::Verdict::unclear;
  }
  return unclear;
}

std::vector<std::string> remarks(const tune::RowIndex& rows, const Evaluation& decision,
                                 const schema::Signature& signature) {
  std::vector<std::string> all;
  const tune::RowCounts& counts = rows.counts();
  const auto count = [&](uint64_t number, std::string_view what) {
    if (number != 0) all.push_back(counted(number, what));
  };
  count(counts.aged, "aged: kernel or microcode differs");
  count(counts.stale, "not used: another build or schema");
  if (counts.used == 0) count(counts.foreign, "not used: another machine");
  count(counts.damaged, "not used: damaged");
  if (is_unclear(decision)) all.emplace_back("measurement unclear, score decides");
  if ((signature.ambient & schema::kDeterministic) != 0 && !rows.empty())
    all.emplace_back("deterministic: rows about the size of a batch are not used");
  return all;
}

}  // namespace

Measurement measurement_of(const EvaluationInput& input, const tune::HeldRow& row) {
  const tune::RowIndex& rows = *input.tuning;
  const tune::RowOrigin& origin = rows.origin_of(row);
  const tune::Range range = rows.range_of(row);
  // How many times as fast: the bounds change places.
  const auto speed = [](double log_ratio) { return std::exp(-log_ratio); };
  return {std::string(verdict_name(verdict_on(row))),
          id_of(*input.op, row.baseline),
          speed(row.speed.log_ratio),
          speed(row.speed.high),
          speed(row.speed.low),
          row.rounds,
          std::string(rigor_name(row.rigor)),
          date_text(row.day),
          tune::text_of(rows.cell_of(row)),
          range.dim.empty() ? "" : base::concat(range.dim, "=", range.first, "..", range.last),
          origin.bundle,
          origin.digest,
          std::string(place_name(origin.place)),
          origin.machine.hard,
          origin.aged};
}

std::string describe_row(const EvaluationInput& input, const tune::HeldRow& row) {
  const Measurement shown = measurement_of(input, row);
  const std::string baseline = shown.baseline.substr(shown.baseline.find('/') + 1);
  const std::string ratio = printed("%.2fx [%.2f, %.2f]", shown.speed, shown.low, shown.high);
  const std::string said = shown.verdict == "same" ? " as fast as "
                           : shown.verdict == "unclear"
                               ? " unclear against "
                               : base::concat(" ", shown.verdict, " than ");
  return base::concat("measured ", ratio, said, baseline, ", ", shown.rounds, " rounds, ",
                      shown.rigor);
}

const tune::HeldRow* row_of_refused(const EvaluationInput& input, const Evaluation& decision,
                                    const CandidateVerdict& refused,
                                    const schema::Signature& signature) {
  if (input.tuning == nullptr || input.tuning->empty() || decision.order.empty()) return nullptr;
  const CandidateVerdict& chosen = decision.verdicts[decision.order[0]];
  // A policy that prefers the chosen one does so whatever was measured.
  if (refused.tier != chosen.tier) return nullptr;
  const uint32_t answer = input.tuning->answer(schema::FactsOf{signature});
  const std::span<const tune::HeldRow> rows = input.tuning->rows(answer);
  const auto found = std::ranges::find_if(rows, [&](const tune::HeldRow& row) {
    return row.implementation == refused.implementation->number &&
           row.baseline == chosen.implementation->number;
  });
  return found == rows.end() ? nullptr : &*found;
}

void add_tuning(const EvaluationInput& input, const Evaluation& decision,
                const schema::Signature& signature, Explanation& explanation) {
  if (input.tuning == nullptr) return;
  const tune::RowCounts& counts = input.tuning->counts();
  explanation.tuning = {counts.used, counts.aged, counts.foreign, counts.stale, counts.damaged};
  const std::vector<std::string> all = remarks(*input.tuning, decision, signature);
  if (all.empty()) return;
  if (!explanation.note.empty()) explanation.note += "; ";
  explanation.note += base::concat("tuning: ", base::join(all, "; "));
}

}  // namespace opmux::dispatch
