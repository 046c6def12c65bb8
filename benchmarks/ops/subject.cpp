#include "subject.hpp"

#include <utility>

#include "../rounds.hpp"
#include "../world.hpp"

namespace opmux::bench {

Dispatched::Dispatched(Runtime& runtime, const Point& point, const Buffers& buffers, std::string id,
                       int threads)
    : buffers_(buffers), id_(std::move(id)), op_(runtime.op(point.op).value()) {
  options_.max_threads = threads;
  scope_ = std::make_unique<PolicyScope>(runtime, Policy{.require = {"impl:" + id_}});
  must(scope_->status());
  const Explanation explanation = op_.explain_arguments(buffers.arguments());
  if (explanation.chosen == id_) return;
  reason_ = explanation.note;
  for (const Candidate& candidate : explanation.candidates) {
    if (candidate.id == id_) reason_ = candidate.reason;
  }
}

double Dispatched::first() {
  CallReport report;
  const double start = now_ns();
  const Status status = op_.call_arguments(buffers_.arguments(), options_, &report);
  if (!status.ok()) reason_ = status.message();
  if (status.ok() && report.implementation != id_) reason_ = report.reason;
  return now_ns() - start;
}

void Dispatched::run() const { must(op_.call_arguments(buffers_.arguments(), options_)); }

std::vector<std::string> implementations(const Runtime& runtime, const std::string& op) {
  std::vector<std::string> ids;
  for (const OperatorInfo& info : runtime.list()) {
    if (info.name != op) continue;
    for (const ImplementationInfo& each : info.implementations) {
      // The tensors of a point are in CPU memory.
      if (each.available && !each.own_memory) ids.push_back(each.id);
    }
  }
  return ids;
}

std::string chosen(const Runtime& runtime, const Point& point, const Buffers& buffers) {
  return runtime.op(point.op).value().explain_arguments(buffers.arguments()).chosen;
}

}  // namespace opmux::bench
