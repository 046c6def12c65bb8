#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>
#include <opmux/tensor.hpp>

namespace opmux {

/// How a number is compared in a condition.
enum class Compare : uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  multiple_of
};

/// A question about a call, for Rule::when: a tree of comparisons joined by &&, || and !.
///
///     Condition::dim("T", Compare::greater, 8192) && Condition::dtype("q", opmux::bf16)
///
/// Names are those of an operator's schema. A rule whose condition names something that an operator
/// does not have does not apply there. What is asked about an absent argument is neither true nor
/// false, as is a division by zero; `&&` and `||` pass over it if their other side decides. A rule
/// applies if its condition is true. Values are immutable and cheap to copy.
class OPMUX_API Condition {
 public:
  enum class Kind : uint8_t {
    dim,
    rows,
    dtype,
    rank,
    device,
    present,
    contiguous,
    aligned,
    layout,
    scalar,
    ambient,
    tag,
    text,
    all_of,
    any_of,
    negation,
  };
  struct Node;

  static Condition dim(std::string name, Compare compare, int64_t value);
  static Condition rows(Compare compare, int64_t value);
  static Condition dtype(std::string arg, DType dtype);
  static Condition rank(std::string arg, Compare compare, int64_t value);
  /// Device type of a tensor argument.
  static Condition device(std::string arg, int32_t type);
  static Condition present(std::string arg);
  static Condition contiguous(std::string arg);
  static Condition aligned(std::string arg, int64_t bytes);
  static Condition layout(std::string arg, std::string order);
  /// An int, bool (0/1) or enum (position) argument.
  static Condition scalar(std::string arg, Compare compare, int64_t value);
  /// "grad", "capturing", "deterministic", "training".
  static Condition ambient(std::string name);
  static Condition tag(uint32_t tag);

  /// A condition as policy files have it, in a subset of CEL:
  ///
  ///     Condition::parse("dtype(q) == \"bf16\" && T > 8192 && D in [64, 128]")
  ///
  /// Fails with "policy.when" and the column; names and types are checked where an operator is
  /// known. docs/policy_conditions.md has all of it.
  static Result<Condition> parse(std::string_view text);

  Condition operator&&(const Condition& other) const;
  Condition operator||(const Condition& other) const;
  Condition operator!() const;

  const Node& node() const { return *node_; }
  /// One spelling per meaning-as-written; equal texts are equal conditions.
  std::string to_string() const;

 private:
  explicit Condition(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

struct Condition::Node {
  Kind kind = Kind::dim;
  std::string name = {};
  Compare compare = Compare::equal;
  int64_t value = 0;
  std::string text = {};                 ///< layout order, or the text of a condition
  std::vector<Condition> operands = {};  ///< of all_of, any_of, negation
};

/// Changes the score of the implementations that match: (priority + add) * multiply.
struct Boost {
  std::string impl;     ///< a token, usually a glob such as "rms_norm/acme.*"
  double add = 0;       ///< -1000 to 1000
  double multiply = 1;  ///< 0.01 to 100
};

/// Numbers of a breaker. What is not set is as the next weaker place has it.
struct BreakerOptions {
  std::optional<int> consecutive_failures = {};  ///< open after this many in a row; 1-1000
  std::optional<double> failure_rate = {};       ///< or after this part of the window; 0.01-1
  std::optional<int> window = {};                ///< outcomes looked back on; 1-1024
  std::optional<int> min_calls = {};             ///< the rate counts from this many on; 1-1024
  std::optional<int64_t> open_for_ms = {};       ///< the first time; then twice as long, and so on
  std::optional<int64_t> open_at_most_ms = {};
  std::optional<int> permits = {};    ///< calls at once while half open; 1-100
  std::optional<int> successes = {};  ///< that close it again; 1-100
  /// Calls that take longer are slow: then every call is timed. Not set: none is.
  std::optional<int64_t> slow_call_us = {};
  std::optional<double> slow_rate = {};  ///< open after this part of the window was slow; 0.01-1

  friend bool operator==(const BreakerOptions&, const BreakerOptions&) = default;
};

/// What happens when the shadow check finds a difference.
enum class OnMismatch : uint8_t { open, report };

/// Settings of the shadow check, which computes some calls again with the reference.
struct ShadowOptions {
  /// One call in so many of each implementation, more while it is not proven; 0 or not set: none.
  std::optional<int> every = {};
  std::optional<OnMismatch> on_mismatch = {};  ///< not set: open
  std::optional<double> share = {};            ///< of one thread, at most; not set: 0.01
  std::optional<int> memory_mb = {};           ///< for copies that wait; not set: 16

  friend bool operator==(const ShadowOptions&, const ShadowOptions&) = default;
};

/// One rule. Lists hold tokens: `default`, `vendor`, `reference`, `vendor:NAME`, `impl:ID`, or a
/// glob with `/`. Constraints (`deny`, `require`) of all matching rules hold; of the ordering
/// fields (`prefer`, `order`, `strict`, `allow`, `transforms`) the first matching rule that sets
/// one wins.
struct Rule {
  std::string name = {};
  std::string op = "*";   ///< an operator, or a glob over operators
  std::string impl = {};  ///< a token: what `breaker` is about; empty = every implementation
  std::optional<Condition> when = {};
  std::vector<std::string> require = {}, prefer = {}, order = {}, deny = {}, allow = {};
  std::vector<Boost> boost = {};
  /// What may be done to tensors that an implementation does not take as they are: `contiguous`,
  /// `widen`, or `none` alone, against a weaker policy. An ordering field.
  std::vector<std::string> transforms = {};
  std::optional<bool> strict = {};
  std::optional<BreakerOptions> breaker = {};
  int rank = 50;  ///< 0-1000, higher first, then the order of the list
  std::string reason = {}, owner = {}, expires = {};  ///< expires: "2027-02-01", UTC, end of day
  /// Set by whoever reads the clock: of an expired rule only deny and require stay in force.
  bool expired = false;
  bool allow_none = false;
  std::string where = {};  ///< "policy.yaml:12", for messages
};

/// What a program, a scope, the environment or a file wants of selection. Everything is optional.
struct OPMUX_API Policy {
  std::vector<std::string> prefer = {}, require = {}, deny = {}, allow = {};
  std::optional<bool> strict = {};
  std::vector<std::string> allow_vendors = {}, deny_vendors = {};  ///< touch only kind vendor
  std::vector<std::string> transforms = {};                        ///< as those of a rule
  /// Exclusive order per operator.
  std::map<std::string, std::vector<std::string>> per_op = {};
  std::vector<Rule> rules = {};
  BreakerOptions breaker = {};
  ShadowOptions shadow = {};
  bool strict_names = false;  ///< a rule that names what is not present is an error
  /// The policy that this one stands on: it speaks where this one is silent, and its constraints
  /// hold too. Set by combine().
  std::shared_ptr<const Policy> outer = {};

  bool empty() const;
};

/// A policy inside another, as a scope within a scope: ordering fields of `inner` replace those of
/// `outer`, constraints add up. A policy that occurs twice on the way out counts once.
OPMUX_API Policy combine(const Policy& outer, const Policy& inner);

/// Checks everything that can be checked without an operator: tokens, ids, globs, ranges, limits.
/// Reasons "policy.token", "policy.op", "policy.when", "policy.boost", "policy.rank",
/// "policy.expires", "policy.vendor", "policy.transforms", "policy.too_deep".
OPMUX_API Status validate(const Policy& policy);

}  // namespace opmux
