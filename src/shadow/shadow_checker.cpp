#include "shadow/shadow_checker.hpp"

#include <algorithm>
#include <cmath>

#include <opmux/detail/opaque_call.hpp>

#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "dispatch/call/attempt.hpp"
#include "health/breaker_key.hpp"
#include "shadow/opaque_results.hpp"
#include "verify/bounds.hpp"

namespace opmux::shadow {
namespace {

std::vector<std::byte> as_f32(std::span<const std::byte> packed, DType dtype) {
  const std::vector<double> values = verify::values_of(packed, dtype);
  std::vector<std::byte> wide(values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i)
    verify::write_element(&wide[i * sizeof(float)], f32, values[i]);
  return wide;
}

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

}  // namespace

CallAgain::CallAgain(const verify::CallCopy& copy, const verify::CallView& view)
    : copy_(copy), tensors_(copy.arguments().size()), memory_(copy.arguments().size()) {
  arguments_.count = static_cast<uint32_t>(copy.arguments().size());
  for (size_t i = 0; i < copy.arguments().size(); ++i) {
    const verify::CopiedArgument& from = copy.arguments()[i];
    arguments_.tags[i] = static_cast<ArgTag>(from.tag);
    if (from.is_tensor()) {
      place(i, from, verify::widens(view, view.arguments[i]));
    } else if (from.tag == OPMUX_ARG_F64) {
      arguments_.values[i].f64 = from.f64;
    } else if (from.tag == OPMUX_ARG_NONE) {
      arguments_.values[i].tensor = &tensors_[i];
    } else {
      arguments_.values[i].i64 = from.i64;
    }
  }
}

void CallAgain::place(size_t i, const verify::CopiedArgument& from, bool wide) {
  const DType dtype = wide ? f32 : from.dtype;
  widened_ |= wide && from.dtype != f32;
  std::byte* data = from.before.data();
  if (from.written) {
    if (from.read) {
      memory_[i] = wide ? as_f32(from.before, from.dtype)
                        : std::vector<std::byte>(from.before.begin(), from.before.end());
    } else {
      const size_t elements = from.after.size() / static_cast<size_t>(from.dtype.size_bytes());
      memory_[i].assign(elements * static_cast<size_t>(dtype.size_bytes()), std::byte{0xff});
    }
    data = memory_[i].data();
  }
  tensors_[i] = TensorView(data, dtype, from.dims(), {}, from.device);
  arguments_.values[i].tensor = &tensors_[i];
}

std::vector<std::vector<double>> CallAgain::results() const {
  std::vector<std::vector<double>> all;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!copy_.arguments()[i].written) continue;
    all.push_back(verify::values_of(memory_[i], tensors_[i].dtype()));
  }
  return all;
}

std::vector<std::vector<std::byte>> CallAgain::outputs() const {
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (copy_.arguments()[i].written) all.push_back(memory_[i]);
  }
  return all;
}

ShadowVerdict compare_with_reference(dispatch::OperatorSlot& slot, const verify::CallCopy& copy,
                                     verify::JudgedCall& judged) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const CallAgain again(copy, judged.view());
    uint64_t took_ns = 0;
    Status status = dispatch::run_reference(slot, again.arguments(), copy.tag(), &took_ns);
    if (!status.ok() && attempt == 0 && again.widened()) {
      judged.tie_outputs();  // the reference does not write f32
      continue;
    }
    if (!status.ok()) return {std::move(status)};
    verify::Expected expected = verify::bounded(judged.view(), again.results());
    const auto mismatch = verify::judge(judged.view(), expected, copy.outputs());
    return {{}, mismatch, took_ns, std::move(expected)};
  }
  return {};
}

std::optional<verify::Mismatch> not_finite(const verify::CallCopy& copy,
                                           const verify::CallView& view) {
  for (const verify::ArgumentView& argument : view.arguments) {
    if (argument.tensor != nullptr && !all_finite(argument.tensor->values)) return {};
    if (!std::isfinite(argument.f64)) return {};
  }
  for (size_t i = 0; i < copy.arguments().size(); ++i) {
    const verify::CopiedArgument& written = copy.arguments()[i];
    if (!written.written || !verify::is_float(written.dtype)) continue;
    const std::vector<double> values = verify::values_of(written.after, written.dtype);
    for (size_t element = 0; element < values.size(); ++element) {
      if (!std::isfinite(values[element]))
        return verify::Mismatch{i, element, values[element], 0, 0};
    }
  }
  return {};
}

namespace {

constexpr double kShare = 0.01, kLeastShare = 0.001;
constexpr int kEveryOnline = 1024;
constexpr size_t kMegabyte = size_t{1} << 20;
constexpr int kMemoryMb = 16;
constexpr size_t kManyTaps = 64;

/// The first reference of an operator; null if it has none.
const registry::ImplementationRecord* reference_of(const registry::OperatorRecord& op) {
  const auto found = std::ranges::find_if(op.implementations, [](const auto& implementation) {
    return implementation->kind == Kind::reference;
  });
  return found == op.implementations.end() ? nullptr : found->get();
}

registry::ImplementationPtr find_implementation(const registry::OperatorRecord& op,
                                                uint32_t number) {
  const auto found = std::ranges::find_if(op.implementations,
                                          [&](const auto& one) { return one->number == number; });
  return found == op.implementations.end() ? nullptr : *found;
}

template <class Field>
void fill_field(Field& field, const Field& weaker) {
  if (!field) field = weaker;
}

ShadowInfo info_of(const std::string& id, const ShadowCounts& counts) {
  ShadowInfo info;
  info.implementation = id;
  info.compared = counts.compared.load(std::memory_order_relaxed);
  info.mismatches = counts.mismatches.load(std::memory_order_relaxed);
  info.not_finite = counts.not_finite.load(std::memory_order_relaxed);
  for (size_t i = 0; i < kShadowSkips; ++i) {
    const uint64_t skipped = counts.skipped[i].load(std::memory_order_relaxed);
    if (skipped != 0)
      info.skipped.push_back({std::string(name_of(static_cast<ShadowSkip>(i))), skipped});
  }
  return info;
}

}  // namespace

ShadowOptions shadow_options(const policy::PolicySet& policies) {
  ShadowOptions options;
  for (const policy::PolicyLayerPtr& layer : policies.layers) {
    for (const policy::PolicyLayer* at = layer.get(); at != nullptr; at = at->outer().get()) {
      const ShadowOptions& own = at->policy().shadow;
      fill_field(options.every, own.every);
      fill_field(options.on_mismatch, own.on_mismatch);
      fill_field(options.share, own.share);
      fill_field(options.memory_mb, own.memory_mb);
    }
  }
  if (tuning_mode(policies) >= Tuning::online) fill_field(options.every, {kEveryOnline});
  return options;
}

Tuning tuning_mode(const policy::PolicySet& policies) {
  for (const policy::PolicyLayerPtr& layer : policies.layers) {
    for (const policy::PolicyLayer* at = layer.get(); at != nullptr; at = at->outer().get()) {
      if (at->policy().tuning) return *at->policy().tuning;
    }
  }
  return Tuning::bundle;
}

ShadowChecker::ShadowChecker(const base::Clock& clock, base::EventLog& log,
                             const registry::SnapshotSource& registry, health::Health& health,
                             const base::Clock& breaker_clock, bool own_thread)
    : log_(log),
      registry_(registry),
      health_(health),
      own_thread_(own_thread),
      tuner_(breaker_clock, log),
      site_(breaker_clock, *this),
      job_(thread_,
           [this] {
             allowed_ns_ = 0;
             return [this](uint64_t now_ns) { return work(now_ns); };
           }),
      thread_(clock, own_thread) {}

ShadowChecker::~ShadowChecker() { stop(); }

std::shared_ptr<dispatch::CallTap> ShadowChecker::tap_of(
    const registry::OperatorRecord& op, const registry::ImplementationPtr& implementation) const {
  if (site_.every.load(std::memory_order_acquire) == 0) return nullptr;
  if (implementation->kind == Kind::reference || reference_of(op) == nullptr) return nullptr;
  return known_.with([&](Known& known) -> std::shared_ptr<dispatch::CallTap> {
    std::weak_ptr<ShadowTap>& place = known.taps[implementation->number];
    if (auto tap = place.lock()) return tap;
    auto& counts = known.counts[implementation->id];
    if (counts == nullptr) counts = std::make_shared<ShadowCounts>();
    auto tap = std::make_shared<ShadowTap>(site_, implementation, counts);
    place = tap;
    if (known.taps.size() % kManyTaps == 0)
      std::erase_if(known.taps, [](const auto& one) { return one.second.expired(); });
    return tap;
  });
}

void ShadowChecker::follow(const policy::PolicySet& policies) {
  const ShadowOptions options = shadow_options(policies);
  tuner_.follow(tuning_mode(policies));
  share_.store(std::max(options.share.value_or(kShare), kLeastShare), std::memory_order_relaxed);
  opens_.store(options.on_mismatch.value_or(OnMismatch::open) == OnMismatch::open,
               std::memory_order_relaxed);
  const int memory_mb = std::max(options.memory_mb.value_or(kMemoryMb), 0);
  site_.memory_limit.store(static_cast<size_t>(memory_mb) * kMegabyte, std::memory_order_relaxed);
  const auto every = static_cast<uint32_t>(std::max(options.every.value_or(0), 0));
  const uint32_t before = site_.every.exchange(every, std::memory_order_acq_rel);
  if ((before == 0) != (every == 0)) turn(every != 0);
}

void ShadowChecker::turn(bool on) {
  version_.fetch_add(1, std::memory_order_acq_rel);
  if (!on) site_.queue.clear();
  if (on) job_.wake();
}

void ShadowChecker::wake() {
  thread_.revive();
  job_.wake();
}

void ShadowChecker::tick(uint64_t now_ns) {
  if (!own_thread_) thread_.tick(now_ns);
}

uint64_t ShadowChecker::work(uint64_t now_ns) {
  const double share = share_.load(std::memory_order_relaxed);
  while (now_ns >= allowed_ns_) {
    const std::unique_ptr<ShadowSample> sample = site_.queue.pop();
    if (sample == nullptr) return base::Maintenance::kNever;
    const uint64_t started = base::thread_time_ns();
    look_at(*sample);
    site_.queue.give_back(sample->implementation, sample->call.bytes());
    if (share >= 1) continue;
    const auto took = static_cast<double>(base::thread_time_ns() - started);
    allowed_ns_ = now_ns + static_cast<uint64_t>(took / share);
  }
  return allowed_ns_;
}

void ShadowChecker::look_at(const ShadowSample& sample) {
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  const registry::OperatorRecord* const op = snapshot->find(sample.op);
  dispatch::OperatorSlot* const slot = engine_->find(sample.op);
  const registry::ImplementationPtr implementation =
      op == nullptr ? nullptr : find_implementation(*op, sample.implementation);
  if (implementation == nullptr || slot == nullptr) return;  // it was withdrawn
  const schema::Schema& schema = *op->schema;
  if (schema.args.size() != sample.call.arguments().size()) return;  // the schema has changed
  verify::JudgedCall judged(schema, sample.call);
  log_not_finite(sample, *implementation, judged);
  const ShadowVerdict verdict = compare_with_reference(*slot, sample.call, judged);
  if (!verdict.compared.ok()) return sample.counts->skip(ShadowSkip::reference);
  sample.counts->compared.fetch_add(1, std::memory_order_relaxed);
  if (verdict.mismatch) {
    log_mismatch(sample, *implementation, schema, judged, *verdict.mismatch);
  } else {
    sample.counts->agreed.fetch_add(1, std::memory_order_relaxed);
    if (tuner_.on())
      tuner_.look_at(*slot, sample.call, judged.view(), verdict.expected, implementation->number);
    compare_times(sample, *implementation, schema, judged, verdict.reference_ns);
  }
}

void ShadowChecker::compare_times(const ShadowSample& sample,
                                  const registry::ImplementationRecord& of,
                                  const schema::Schema& schema, verify::JudgedCall& judged,
                                  uint64_t reference_ns) {
  if (!health_.breakers().compares_times(of)) return;
  judged.tie_outputs();  // the class depends on the original dtypes
  const CallAgain call(sample.call, judged.view());
  schema::BoundDims dims;
  if (!check_arguments(schema, call.arguments(), dims).ok()) return;
  const schema::Signature signature{&schema, &call.arguments(), &dims, 0, sample.call.tag()};
  health_.breakers().compare(of, signature, sample.took_ns, reference_ns, sample.ended_ns);
}

void ShadowChecker::log_not_finite(const ShadowSample& sample,
                                   const registry::ImplementationRecord& of,
                                   const verify::JudgedCall& judged) const {
  const auto found = not_finite(sample.call, judged.view());
  if (!found) return;
  sample.counts->not_finite.fetch_add(1, std::memory_order_relaxed);
  log_.tell(Level::warning, "shadow.not_finite", of.op, of.id, "", [&] {
    return base::concat(
        found->place(judged.view()), " is ", std::to_string(found->got),
        " although all inputs are finite; the result will be compared with the reference");
  });
}

void ShadowChecker::log_mismatch(const ShadowSample& sample,
                                 const registry::ImplementationRecord& of,
                                 const schema::Schema& schema, verify::JudgedCall& judged,
                                 const verify::Mismatch& mismatch) {
  judged.tie_outputs();  // the class depends on the original dtypes
  const CallAgain call(sample.call, judged.view());
  schema::BoundDims dims;
  if (!check_arguments(schema, call.arguments(), dims).ok()) return;
  const schema::Signature signature{&schema, &call.arguments(), &dims, 0, sample.call.tag()};
  const std::string text = mismatch.describe(judged.view());
  const std::string what = note_mismatch(of, *sample.counts, signature, sample.ended_ns,
                                         {"", mismatch.place(judged.view()), mismatch.got,
                                          mismatch.expected, mismatch.tolerance, text});
  if (verify::DivergenceObserver* const observer = observer_.load(std::memory_order_acquire))
    observer->saw({of, schema, sample.call, mismatch, text, what});
}

std::string ShadowChecker::note_mismatch(const registry::ImplementationRecord& of,
                                         ShadowCounts& counts, const schema::Signature& signature,
                                         uint64_t ended_ns, ShadowMismatch found) {
  counts.mismatches.fetch_add(1, std::memory_order_relaxed);
  counts.agreed.store(0, std::memory_order_relaxed);
  counts.was_wrong.store(true, std::memory_order_relaxed);
  if (opens_.load(std::memory_order_relaxed)) health_.breakers().trip(of, signature, ended_ns);
  const std::string what = describe(health::BreakerKey::of(signature), *signature.schema);
  const std::string text = found.text;
  found.what = what;
  known_.with([&](Known& known) { known.last[of.id] = std::move(found); });
  log_.tell(Level::error, "shadow.mismatch", of.op, of.id, what,
            [&] { return what + ": " + text; });
  return what;
}

void ShadowChecker::look_at_opaque(const registry::ImplementationRecord& of, ShadowCounts& counts,
                                   const schema::Signature& signature,
                                   dispatch::OpaqueRunner& runner) {
  const auto skip = [&](ShadowSkip why) { counts.skip(why); };
  const registry::RegistrySnapshotPtr snapshot = registry_.snapshot();
  const registry::OperatorRecord* const op = snapshot->find(of.op);
  const registry::ImplementationRecord* const body = op == nullptr ? nullptr : reference_of(*op);
  if (body == nullptr) return skip(ShadowSkip::reference);
  std::vector<TensorView> got, expected;
  if (!of.has(OPMUX_IMPL_ATOMIC_OUTPUTS) || !body->has(OPMUX_IMPL_ATOMIC_OUTPUTS) ||
      !runner.returned(got)) {
    log_.tell(Level::info, "shadow.opaque", of.op, of.id, "", [] {
      return std::string(
          "calls are not compared: both functions must be declared pure, and return tensors only");
    });
    return skip(ShadowSkip::opaque);
  }
  switch (verify::CallCopy::obstacle(ReturnedTensors(got).call())) {
    case verify::NoCopy::device: return skip(ShadowSkip::device);
    case verify::NoCopy::arguments: return skip(ShadowSkip::arguments);
    case verify::NoCopy::none: break;
  }
  const uint64_t now_ns = site_.clock.now_ns();
  if (now_ns < opaque_allowed_ns_.load(std::memory_order_relaxed)) return skip(ShadowSkip::busy);
  const uint64_t started = base::thread_time_ns();
  const bool ran = runner.run_again(body->id, expected);
  const auto took = static_cast<double>(base::thread_time_ns() - started);
  const double share = share_.load(std::memory_order_relaxed);
  if (share < 1)
    opaque_allowed_ns_.store(now_ns + static_cast<uint64_t>(took / share),
                             std::memory_order_relaxed);
  if (!ran) return skip(ShadowSkip::reference);
  const ComparedResults compared(of.op, got, expected);
  counts.compared.fetch_add(1, std::memory_order_relaxed);
  if (const auto& wrong = compared.mismatch()) {
    const verify::CallView& view = compared.view();
    note_mismatch(of, counts, signature, site_.clock.now_ns(),
                  {"", wrong->place(view), wrong->got, wrong->expected, wrong->tolerance,
                   wrong->describe(view)});
  } else if (!compared.differs().empty()) {
    note_mismatch(of, counts, signature, site_.clock.now_ns(),
                  {"", "result", 0, 0, 0, compared.differs()});
  } else {
    counts.agreed.fetch_add(1, std::memory_order_relaxed);
  }
}

ShadowReport ShadowChecker::report() const {
  ShadowReport report;
  report.every = site_.every.load(std::memory_order_relaxed);
  report.waiting = site_.queue.waiting();
  known_.with([&](Known& known) {
    for (const auto& [id, counts] : known.counts) {
      ShadowInfo info = info_of(id, *counts);
      if (const auto last = known.last.find(id); last != known.last.end()) info.last = last->second;
      report.implementations.push_back(std::move(info));
    }
  });
  return report;
}

}  // namespace opmux::shadow
