#include "base/tag_table.hpp"

#include <atomic>
#include <map>
#include <unordered_map>

#include "base/locks.hpp"

namespace opmux::base {
namespace {

struct Tags {
  std::map<std::string, uint32_t, std::less<>> numbers;
  std::unordered_map<uint32_t, std::string> words;
};

struct TagTable {
  ForkGuarded<Tags> tags;
  std::atomic<uint32_t> last{0};  ///< outside of `tags`, so that a fork cannot reset it
};

/// Never destroyed, because conditions may be evaluated during process exit.
TagTable& table() {
  static TagTable* const one = new TagTable;
  return *one;
}

}  // namespace

uint32_t tag_number(std::string_view word) {
  TagTable& all = table();
  return all.tags.with([&](Tags& tags) {
    const auto found = tags.numbers.find(word);
    if (found != tags.numbers.end()) return found->second;
    const uint32_t number = all.last.fetch_add(1) + 1;
    tags.numbers.emplace(word, number);
    tags.words.emplace(number, word);
    return number;
  });
}

std::string tag_word(uint32_t number) {
  return table().tags.with([&](Tags& tags) {
    const auto found = tags.words.find(number);
    return found == tags.words.end() ? std::string() : found->second;
  });
}

}  // namespace opmux::base
