#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "world.hpp"

namespace opmux::property {

using Words = std::vector<std::string>;
using Fact = std::optional<int64_t>;

/// A call after the schema's checks: arguments with defaults filled in, and its dimensions.
struct Seen {
  std::vector<Value> args;
  std::map<std::string, int64_t> dims;
  std::optional<std::vector<int64_t>> leading;
};

/// Checks the schema's conditions on a call; nullopt if they do not hold.
std::optional<Seen> check(const Schema& schema, const Call& call);

bool absent(const Value& value);
const Arg* find(const Schema& schema, const std::string& name);
bool has_dim(const Schema& schema, const std::string& name);
int64_t alignment_of(const TensorView& tensor);
int64_t layout_of(const TensorView& tensor);
int64_t packed_layout(const std::string& digits);

/// Facts about a call. A fact about something absent is nullopt.
struct Question {
  const World* world;
  const Call* call;
  const Seen* seen;

  const Value* value(const std::string& name) const;
  Fact ambient(const std::string& name) const;
  Fact dim(const std::string& name) const;
  Fact fact(uint32_t kind, const std::string& name) const;
};

/// Why a candidate is refused, apart from policy: backend, machine, known arguments, capabilities,
/// ambient state, verifier; empty if it is not refused.
std::string refusal(const Candidate& candidate, const Question& ask);

}  // namespace opmux::property
