#include "policy/files/policy_values.hpp"

#include <algorithm>
#include <array>

#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "policy/rules/policy_entry.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {
namespace {

constexpr int64_t kLongestWait = 24 * 3'600'000;
constexpr size_t kLongestText = 4096;

/// A hint for words that other formats accept as booleans.
std::string_view bool_hint(const TextNode& node) {
  constexpr std::array<std::string_view, 4> kYes{"yes", "on", "1", "y"};
  constexpr std::array<std::string_view, 4> kNo{"no", "off", "0", "n"};
  const auto meant = [&](const auto& words) {
    return std::find(words.begin(), words.end(), node.text) != words.end();
  };
  if (!node.is(TextNode::Kind::scalar)) return "";
  if (node.text == "true" || meant(kYes)) return "; did you mean true, without quotes?";
  return node.text == "false" || meant(kNo) ? "; did you mean false, without quotes?" : "";
}

}  // namespace

bool read_map(const TextNode& node, std::string_view what, std::span<const Field> fields,
              Problems& problems) {
  std::vector<std::string_view> keys;
  for (const Field& field : fields) keys.push_back(field.key);
  if (!node.is(TextNode::Kind::map)) {
    problems.add(node.at, "policy.type",
                 base::concat(what, " must be a map with the keys ", base::join(keys, ", "),
                              "; found ", shown(node)));
    return false;
  }
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const TextNode& key = node.items[i];
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& one) { return one.key == key.text; });
    if (field != fields.end()) {
      field->read(node.items[i + 1]);
      continue;
    }
    const std::string near = base::suggestion(key.text, std::span<const std::string_view>(keys));
    problems.add(key.at, "policy.unknown_key",
                 base::concat("unknown key '", key.text.substr(0, 64), "' in ", what,
                              near.empty() ? "; valid keys are " + base::join(keys, ", ") : near));
  }
  return true;
}

void ValueReader::refuse(const TextNode& node, std::string_view reason, std::string text) {
  problems_.add(node.at, reason, std::move(text));
}

void ValueReader::expected(const TextNode& node, std::string_view key, std::string_view what,
                           std::string_view hint) {
  refuse(node, "policy.type",
         base::concat(key, ": expected ", what, ", found ", shown(node), hint));
}

void ValueReader::text(const TextNode& node, std::string_view key, std::string& into) {
  const auto found = text_of(node);
  if (!found) {
    const bool scalar = node.is(TextNode::Kind::scalar);
    return expected(node, key, "a string",
                    scalar ? base::concat("; write it in quotes: \"", node.text, "\"") : "");
  }
  if (found->size() > kLongestText) {
    return refuse(node, "policy.limit",
                  base::concat(key, ": ", found->size(), " bytes; the limit is ", kLongestText));
  }
  into = *found;
}

void ValueReader::boolean(const TextNode& node, std::string_view key, std::optional<bool>& into) {
  const auto found = bool_of(node);
  if (!found) return expected(node, key, "true or false", bool_hint(node));
  into = found;
}

void ValueReader::integer(const TextNode& node, std::string_view key, int64_t least, int64_t most,
                          std::optional<int>& into) {
  const auto found = int_of(node);
  if (!found || *found < least || *found > most) {
    return expected(node, key, base::concat("an integer from ", least, " to ", most));
  }
  into = static_cast<int>(*found);
}

void ValueReader::real(const TextNode& node, std::string_view key, double least, double most,
                       std::optional<double>& into) {
  const auto found = real_of(node);
  if (!found || !(*found >= least && *found <= most)) {
    return expected(
        node, key,
        base::concat("a number from ", base::number_text(least), " to ", base::number_text(most)));
  }
  into = found;
}

void ValueReader::duration(const TextNode& node, std::string_view key,
                           std::optional<int64_t>& into) {
  const auto words = text_of(node);
  const auto found = words ? milliseconds_of(*words) : std::nullopt;
  if (!found || *found <= 0 || *found > kLongestWait) {
    const std::string hint = int_of(node) ? base::concat("; did you mean ", node.text, "s?") : "";
    return expected(node, key, "a time of at most 24h such as 30s (ms, s, m, h)", hint);
  }
  into = found;
}

void ValueReader::short_time(const TextNode& node, std::string_view key,
                             std::optional<int64_t>& into) {
  const auto words = text_of(node);
  const auto found = words ? microseconds_of(*words) : std::nullopt;
  if (!found || *found <= 0 || *found > kLongestWait * 1000) {
    const std::string hint = int_of(node) ? base::concat("; did you mean ", node.text, "us?") : "";
    return expected(node, key, "a time of at most 24h such as 500us (us, ms, s, m, h)", hint);
  }
  into = found;
}

void ValueReader::date(const TextNode& node, std::string_view key, std::string& into) {
  const auto found = text_of(node);
  if (!found || !base::is_date(*found)) {
    return expected(node, key, "a date such as 2027-02-01");
  }
  into = *found;
}

void ValueReader::token(const TextNode& node, std::string_view key, std::string& into) {
  const auto found = text_of(node);
  if (!found) return expected(node, key, "a token such as reference, vendor:NAME or \"*/simd.*\"");
  const auto token = Token::parse(*found);
  if (!token) {
    return refuse(node, "policy.token", base::concat(key, ": ", token.error().message()));
  }
  into = *found;
  places_.push_back({into, key, node.at});
}

void ValueReader::tokens(const TextNode& node, std::string_view key,
                         std::vector<std::string>& into) {
  if (!node.is(TextNode::Kind::list)) {
    const bool scalar = node.is(TextNode::Kind::scalar);
    return expected(node, key, "a list of tokens",
                    scalar ? base::concat("; did you mean [", node.text, "]?") : "");
  }
  for (const TextNode& item : node.items) {
    std::string one;
    token(item, key, one);
    if (!one.empty()) into.push_back(std::move(one));
  }
}

void ValueReader::transforms(const TextNode& node, std::vector<std::string>& into) {
  if (!node.is(TextNode::Kind::list) || node.items.empty()) {
    return expected(node, "transforms", "a list such as [contiguous, widen], or [none]");
  }
  for (const TextNode& item : node.items) {
    const auto found = word(item, "transforms", kTransformWords);
    if (!found) continue;
    if (*found == 0 && node.items.size() > 1) {
      return refuse(item, "policy.transforms",
                    "transforms: none cannot be combined with other words");
    }
    into.emplace_back(kTransformWords[*found]);
  }
}

void ValueReader::breaker(const TextNode& node, BreakerOptions& into) {
  const std::array<Field, 11> fields{{
      {"consecutive_failures",
       [&](const TextNode& v) {
         integer(v, "consecutive_failures", 1, 1000, into.consecutive_failures);
       }},
      {"failure_rate",
       [&](const TextNode& v) { real(v, "failure_rate", 0.01, 1, into.failure_rate); }},
      {"window", [&](const TextNode& v) { integer(v, "window", 1, 1024, into.window); }},
      {"min_calls", [&](const TextNode& v) { integer(v, "min_calls", 1, 1024, into.min_calls); }},
      {"open_for", [&](const TextNode& v) { duration(v, "open_for", into.open_for_ms); }},
      {"open_at_most",
       [&](const TextNode& v) { duration(v, "open_at_most", into.open_at_most_ms); }},
      {"permits", [&](const TextNode& v) { integer(v, "permits", 1, 100, into.permits); }},
      {"successes", [&](const TextNode& v) { integer(v, "successes", 1, 100, into.successes); }},
      {"slow_call", [&](const TextNode& v) { short_time(v, "slow_call", into.slow_call_us); }},
      {"slow_rate", [&](const TextNode& v) { real(v, "slow_rate", 0.01, 1, into.slow_rate); }},
      {"slow_factor",
       [&](const TextNode& v) { real(v, "slow_factor", 0.01, 1000, into.slow_factor); }},
  }};
  if (!read_map(node, "breaker", fields, problems_)) return;
  if (into.window && into.min_calls && *into.min_calls > *into.window) {
    refuse(node, "policy.breaker",
           base::concat("breaker: min_calls (", *into.min_calls, ") is larger than the window (",
                        *into.window, ")"));
  }
  if (into.open_for_ms && into.open_at_most_ms && *into.open_for_ms > *into.open_at_most_ms) {
    refuse(node, "policy.breaker", "breaker: open_for is longer than open_at_most");
  }
}

std::optional<size_t> ValueReader::word(const TextNode& node, std::string_view key,
                                        std::span<const std::string_view> words) {
  const auto found = text_of(node);
  const auto at = std::find(words.begin(), words.end(), found.value_or(""));
  if (at != words.end()) return static_cast<size_t>(at - words.begin());
  expected(node, key, base::join(words, " or "), base::suggestion(node.text, words));
  return std::nullopt;
}

void ValueReader::shadow(const TextNode& node, ShadowOptions& into) {
  constexpr std::array<std::string_view, 2> kWords{"open", "report"};
  constexpr int kMaxEvery = 1 << 30;
  const std::array<Field, 4> fields{{
      {"every", [&](const TextNode& v) { integer(v, "every", 0, kMaxEvery, into.every); }},
      {"on_mismatch",
       [&](const TextNode& value) {
         const auto found = word(value, "on_mismatch", kWords);
         if (found) into.on_mismatch = OnMismatch{*found == 1};
       }},
      {"share", [&](const TextNode& v) { real(v, "share", 0.001, 1, into.share); }},
      {"memory_mb", [&](const TextNode& v) { integer(v, "memory_mb", 1, 4096, into.memory_mb); }},
  }};
  read_map(node, "shadow", fields, problems_);
}

}  // namespace opmux::policy
