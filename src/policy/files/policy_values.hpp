#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/files/problems.hpp"

namespace opmux::policy {

/// A key of a map and the function that reads its value.
struct Field {
  std::string_view key;
  std::function<void(const TextNode&)> read;
};

/// Passes each value of a map to the field with its key; unknown keys are problems. `what` names
/// the map in messages: "a rule". Returns false if the node is not a map.
bool read_map(const TextNode& node, std::string_view what, std::span<const Field> fields,
              Problems& problems);

/// Reads values into variables. A value that does not fit adds a problem and leaves the variable
/// unchanged. `key` is the name of the value in messages.
class ValueReader {
 public:
  explicit ValueReader(Problems& problems) : problems_(problems) {}

  void text(const TextNode& node, std::string_view key, std::string& into);
  void boolean(const TextNode& node, std::string_view key, std::optional<bool>& into);
  void integer(const TextNode& node, std::string_view key, int64_t least, int64_t most,
               std::optional<int>& into);
  void real(const TextNode& node, std::string_view key, double least, double most,
            std::optional<double>& into);
  void duration(const TextNode& node, std::string_view key, std::optional<int64_t>& into);
  /// Reads a time in microseconds.
  void short_time(const TextNode& node, std::string_view key, std::optional<int64_t>& into);
  void date(const TextNode& node, std::string_view key, std::string& into);
  /// Reads one token of a policy list.
  void token(const TextNode& node, std::string_view key, std::string& into);
  void tokens(const TextNode& node, std::string_view key, std::vector<std::string>& into);
  /// Reads a `transforms` list.
  void transforms(const TextNode& node, std::vector<std::string>& into);
  /// The location of each token that was read, in order.
  struct TokenPlace {
    std::string token;
    std::string_view field;
    Mark at;
  };
  const std::vector<TokenPlace>& token_places() const { return places_; }
  void breaker(const TextNode& node, BreakerOptions& into);
  void shadow(const TextNode& node, ShadowOptions& into);
  /// Reads one of `words` and returns its position.
  std::optional<size_t> word(const TextNode& node, std::string_view key,
                             std::span<const std::string_view> words);

  void refuse(const TextNode& node, std::string_view reason, std::string text);

 private:
  void expected(const TextNode& node, std::string_view key, std::string_view what,
                std::string_view hint = "");

  Problems& problems_;
  std::vector<TokenPlace> places_;
};

}  // namespace opmux::policy
