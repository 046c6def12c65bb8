#include <algorithm>

#include "runtime/health_keeper.hpp"

namespace opmux::runtime {
namespace {

template <class Value>
void fill(std::optional<Value>& field, const std::optional<Value>& weaker) {
  if (!field) field = weaker;
}

void fill(BreakerOptions& options, const BreakerOptions& weaker) {
  fill(options.consecutive_failures, weaker.consecutive_failures);
  fill(options.failure_rate, weaker.failure_rate);
  fill(options.window, weaker.window);
  fill(options.min_calls, weaker.min_calls);
  fill(options.open_for_ms, weaker.open_for_ms);
  fill(options.open_at_most_ms, weaker.open_at_most_ms);
  fill(options.permits, weaker.permits);
  fill(options.successes, weaker.successes);
  fill(options.slow_call_us, weaker.slow_call_us);
  fill(options.slow_rate, weaker.slow_rate);
}

bool concerns(const Rule& rule, const policy::Subject& subject) {
  if (!rule.breaker || rule.when || rule.expired) return false;
  if (rule.impl.empty()) return true;
  const auto token = policy::Token::parse(rule.impl);
  return token && token->matches(subject);
}

void fill_from(const policy::PolicyLayer& layer, std::string_view op,
               const policy::Subject& subject, BreakerOptions& options) {
  const auto rules = layer.rules_for(op);
  const auto first =
      std::ranges::find_if(rules, [&](const Rule* rule) { return concerns(*rule, subject); });
  if (first != rules.end()) fill(options, *(*first)->breaker);
  fill(options, layer.policy().breaker);
  if (layer.outer() != nullptr) fill_from(*layer.outer(), op, subject, options);
}

template <class To, class From>
void take(To& to, const std::optional<From>& from, To factor = 1) {
  if (from && *from > 0) to = static_cast<To>(*from) * factor;
}

bool layer_times_calls(const policy::PolicyLayer& layer) {
  const auto timed = [](const Rule& rule) { return rule.breaker && rule.breaker->slow_call_us; };
  return layer.policy().breaker.slow_call_us || std::ranges::any_of(layer.policy().rules, timed) ||
         (layer.outer() != nullptr && layer_times_calls(*layer.outer()));
}

}  // namespace

bool times_calls(const policy::PolicySet& policies) {
  return std::ranges::any_of(policies.layers,
                             [](const auto& one) { return layer_times_calls(*one); });
}

health::BreakerLimits breaker_limits(const policy::PolicySet& policies, std::string_view op,
                                     const policy::Subject& subject) {
  BreakerOptions options;
  for (const auto& layer : policies.layers) fill_from(*layer, op, subject, options);
  health::BreakerLimits limits;
  take(limits.consecutive_failures, options.consecutive_failures);
  take(limits.failure_rate, options.failure_rate);
  take(limits.window, options.window);
  take(limits.min_calls, options.min_calls);
  take(limits.open_for_ns, options.open_for_ms, health::kMillisecondNs);
  take(limits.open_at_most_ns, options.open_at_most_ms, health::kMillisecondNs);
  take(limits.permits, options.permits);
  take(limits.successes, options.successes);
  take(limits.slow_call_ns, options.slow_call_us, uint64_t{1000});
  take(limits.slow_rate, options.slow_rate);
  limits.window = std::min(limits.window, health::BreakerLimits::kMaxWindow);
  return limits;
}

}  // namespace opmux::runtime
