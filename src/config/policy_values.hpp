#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "config/problems.hpp"
#include "config/scalar.hpp"

namespace opmux::config {

/// A key of a map and what reads its value.
struct Field {
  std::string_view key;
  std::function<void(const TextNode&)> read;
};

/// Gives each value of a map to the field of its key; unknown keys are problems. `what` names the
/// map: "a rule". False if the node is no map.
bool read_map(const TextNode& node, std::string_view what, std::span<const Field> fields,
              Problems& problems);

/// Reads values into places; what does not fit is a problem at the value and leaves the place as
/// it was. `key` is what messages call it.
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
  /// In microseconds.
  void short_time(const TextNode& node, std::string_view key, std::optional<int64_t>& into);
  void date(const TextNode& node, std::string_view key, std::string& into);
  /// One token of a policy list.
  void token(const TextNode& node, std::string_view key, std::string& into);
  void tokens(const TextNode& node, std::string_view key, std::vector<std::string>& into);
  /// The words of `transforms`.
  void transforms(const TextNode& node, std::vector<std::string>& into);
  /// Where each token that was read stands, in the order of reading.
  struct TokenPlace {
    std::string token;
    std::string_view field;
    Mark at;
  };
  const std::vector<TokenPlace>& token_places() const { return places_; }
  void breaker(const TextNode& node, BreakerOptions& into);
  void shadow(const TextNode& node, ShadowOptions& into);
  /// One of some words, by its position.
  std::optional<size_t> word(const TextNode& node, std::string_view key,
                             std::span<const std::string_view> words);

  void refuse(const TextNode& node, std::string_view reason, std::string text);

 private:
  void expected(const TextNode& node, std::string_view key, std::string_view what,
                std::string_view hint = "");

  Problems& problems_;
  std::vector<TokenPlace> places_;
};

}  // namespace opmux::config
