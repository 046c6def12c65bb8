#include <algorithm>
#include <cctype>
#include <regex>

#include "base/text.hpp"
#include "cli/migrate/systems.hpp"

namespace opmux::cli::migrate {
namespace {

/// A value without its quotes and without the comment after it.
std::string unquoted(std::string_view text) {
  text = trimmed(text);
  const char quote = text.empty() ? '\0' : text.front();
  if (quote == '"' || quote == '\'') {
    const size_t end = text.find(quote, 1);
    if (end != text.npos) return std::string(text.substr(1, end - 1));
  }
  const size_t comment = std::min(text.find(" #"), text.size());
  return std::string(trimmed(text.substr(0, comment)));
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

/// All matches of a pattern with two groups, a name and a value.
Settings matches_of(std::string_view text, const char* pattern) {
  const std::regex expression(pattern, std::regex::ECMAScript | std::regex::multiline);
  Settings found;
  using Iterator = std::regex_iterator<std::string_view::const_iterator>;
  for (Iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    found.push_back({(*at)[1].str(), unquoted((*at)[2].str())});
  }
  return found;
}

/// The text between the first of `open` after a word and the `close` that ends it.
std::string_view block_after(std::string_view text, std::string_view word, char open, char close) {
  const size_t from = text.find(word);
  if (from == text.npos) return {};
  const size_t start = text.find(open, from);
  if (start == text.npos) return {};
  size_t depth = 0;
  for (size_t at = start; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return text.substr(start + 1, at - start - 1);
  }
  return {};
}

}  // namespace

const TextNode* value_of(const TextNode& map, std::string_view key) {
  for (size_t i = 0; map.is(TextNode::Kind::map) && i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == key) return &map.items[i + 1];
  }
  return nullptr;
}

std::string text_of_value(const TextNode& node) {
  const bool map = node.is(TextNode::Kind::map);
  if (!map && !node.is(TextNode::Kind::list)) return node.text;
  std::string text;
  for (size_t i = 0; i < node.items.size(); ++i) {
    const bool value = map && i % 2 == 1;
    if (i > 0) text += value ? ": " : ", ";
    text += text_of_value(node.items[i]);
  }
  return map ? base::concat("{", text, "}") : base::concat("[", text, "]");
}

Words words_of(const TextNode& node, char separator) {
  if (!node.is(TextNode::Kind::list)) return split(node.text, separator);
  Words words;
  for (const TextNode& item : node.items) words.push_back(text_of_value(item));
  return words;
}

Settings read_variables(std::string_view text) {
  Settings found;
  for (const std::string& whole : split(text, '\n')) {
    std::string_view line = whole;
    if (line.starts_with('#')) continue;
    if (line.starts_with("export ")) line = trimmed(line.substr(7));
    const size_t sign = line.find('=');
    if (sign == line.npos || !is_variable_name(line.substr(0, sign))) return {};
    found.push_back({std::string(line.substr(0, sign)), unquoted(line.substr(sign + 1))});
  }
  return found;
}

Settings read_fla_backend(std::string_view text) {
  if (text.find("BaseBackend") == text.npos) return {};
  return matches_of(text,
                    R"(^(?: {4}|\t)(backend_type|package_name|env_var|default_enable|priority))"
                    R"([ \t]*=[ \t]*(.+)$)");
}

Settings read_flagtree_spec(std::string_view text) {
  Settings names;
  for (const std::string& one : split(block_after(text, "__all__", '[', ']'), ',')) {
    const std::string name = unquoted(one);
    if (!name.empty() && name != "...") {
      names.push_back({base::concat("__all__[", names.size(), "]"), name});
    }
  }
  return names;
}

Settings read_mllm_descriptor(std::string_view text) {
  const std::string_view fields = block_after(text, "PluginOpPackageDescriptor", '{', '}');
  Settings found;
  for (size_t at = fields.find('.'); at < fields.size();) {
    const size_t sign = fields.find('=', at);
    if (sign == fields.npos) break;
    const std::string_view value = trimmed(fields.substr(sign + 1));
    size_t end = fields.find(',', sign);
    std::string text_of_field;
    if (value.starts_with('{')) {
      const std::string_view items = block_after(fields.substr(sign), "=", '{', '}');
      end = static_cast<size_t>(items.data() + items.size() - fields.data());
      Words words;
      for (const std::string& item : split(items, ',')) {
        std::string word = unquoted(item.substr(0, item.find("//")));
        if (!word.empty()) words.push_back(std::move(word));
      }
      text_of_field = base::join(words, ", ");
    } else {
      text_of_field = unquoted(fields.substr(sign + 1, std::min(end, fields.size()) - sign - 1));
    }
    found.push_back({std::string(trimmed(fields.substr(at + 1, sign - at - 1))), text_of_field});
    // A field begins after a comma, at the start of a line.
    at = fields.find('\n', std::min(end, fields.size()));
    at = at == fields.npos ? fields.size() : fields.find('.', at);
  }
  return found;
}

}  // namespace opmux::cli::migrate
