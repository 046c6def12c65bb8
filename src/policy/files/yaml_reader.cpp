#include "policy/files/yaml_reader.hpp"

#ifdef OPMUX_YAML
#include <yaml.h>
#endif

#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"

namespace opmux::policy {

#ifdef OPMUX_YAML
namespace {

Mark mark_of(const yaml_mark_t& mark) {
  return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
}

std::string_view view_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

/// Exception that ends parsing when a limit is exceeded or the document is not acceptable.
struct Stopped {
  Mark at;
  std::string_view reason;
  std::string text;
};

[[noreturn]] void stop(const yaml_mark_t& at, std::string text) {
  throw Stopped{mark_of(at), "policy.limit", std::move(text)};
}

/// Whether a plain scalar means null.
bool means_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

size_t count_nodes(const TextNode& node) {
  size_t count = 1;
  for (const TextNode& item : node.items) count += count_nodes(item);
  return count;
}

/// Builds nodes from the parser's events and stops when a limit is exceeded.
class Builder {
 public:
  Builder(const TextLimits& limits, Problems& problems) : limits_(limits), problems_(problems) {}

  TextNode take() { return std::move(root_); }

  void add(const yaml_event_t& event) {
    const auto& data = event.data;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT: return start_document(event.start_mark);
      case YAML_SCALAR_EVENT: return add_scalar(event);
      case YAML_ALIAS_EVENT: return add_alias(event.start_mark, view_of(data.alias.anchor));
      case YAML_SEQUENCE_START_EVENT:
        return open(event.start_mark, view_of(data.sequence_start.tag),
                    view_of(data.sequence_start.anchor), TextNode::Kind::list);
      case YAML_MAPPING_START_EVENT:
        return open(event.start_mark, view_of(data.mapping_start.tag),
                    view_of(data.mapping_start.anchor), TextNode::Kind::map);
      case YAML_SEQUENCE_END_EVENT: return close();
      case YAML_MAPPING_END_EVENT: check_keys(open_.back().node); return close();
      default: return;
    }
  }

 private:
  struct Open {
    TextNode node;
    std::string anchor;
  };
  struct Anchored {
    TextNode node;
    size_t nodes = 0;  ///< 0 while the node is being read
  };

  void start_document(const yaml_mark_t& mark) {
    if (++documents_ == 1) return;
    throw Stopped{mark_of(mark), "policy.syntax",
                  "a second document starts here; a policy must be a single document"};
  }

  void add_scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const std::string_view tag = view_of(scalar.tag);
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE || tag == "!";
    refuse_tag(event.start_mark, tag);
    const bool null = !quoted && tag.empty() && means_null(text);
    TextNode node = make(event.start_mark, null ? TextNode::Kind::null : TextNode::Kind::scalar);
    node.quoted = quoted;
    if (!null) node.text = text;
    finish(std::move(node), std::string(view_of(scalar.anchor)));
  }

  void add_alias(const yaml_mark_t& mark, std::string_view anchor) {
    if (++aliases_ > limits_.aliases) {
      stop(mark, base::concat("more than ", limits_.aliases, " aliases"));
    }
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Stopped{mark_of(mark), "policy.syntax",
                    base::concat("there is no anchor '&", anchor, "' before this alias")};
    }
    if (found->second.nodes == 0) {
      throw Stopped{mark_of(mark), "policy.syntax", "an alias inside the node that it refers to"};
    }
    count(mark, found->second.nodes);
    TextNode copy = found->second.node;
    copy.at = mark_of(mark);
    finish(std::move(copy), {});
  }

  void count(const yaml_mark_t& mark, size_t more) {
    nodes_ += more;
    if (nodes_ > limits_.nodes) {
      stop(mark, base::concat("more than ", limits_.nodes, " keys and values in one text"));
    }
  }

  TextNode make(const yaml_mark_t& mark, TextNode::Kind kind) {
    count(mark, 1);
    TextNode node;
    node.kind = kind;
    node.at = mark_of(mark);
    return node;
  }

  void refuse_tag(const yaml_mark_t& mark, std::string_view tag) {
    if (tag.empty() || tag == "!") return;
    problems_.add(mark_of(mark), "policy.syntax",
                  base::concat("the tag '", tag, "': tags are not allowed in a policy"));
  }

  void open(const yaml_mark_t& mark, std::string_view tag, std::string_view anchor,
            TextNode::Kind kind) {
    if (open_.size() >= limits_.depth) {
      stop(mark, base::concat("nested more than ", limits_.depth, " deep"));
    }
    refuse_tag(mark, tag);
    if (!anchor.empty()) anchors_[std::string(anchor)] = {};
    open_.push_back({make(mark, kind), std::string(anchor)});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.node), std::move(done.anchor));
  }

  void finish(TextNode node, std::string anchor) {
    if (!anchor.empty()) {
      const size_t nodes = count_nodes(node);
      anchors_[std::move(anchor)] = {node, nodes};
    }
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().node.items.push_back(std::move(node));
    }
  }

  void check_keys(const TextNode& map) {
    std::unordered_map<std::string_view, Mark> seen;
    for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
      const TextNode& key = map.items[i];
      if (!key.is(TextNode::Kind::scalar)) {
        problems_.add(key.at, "policy.syntax", "a key must be a scalar");
      } else if (key.text == "<<" && !key.quoted) {
        problems_.add(key.at, "policy.syntax",
                      "merge keys are not allowed; use an alias of a whole list or map");
      } else if (const auto [first, added] = seen.emplace(key.text, key.at); !added) {
        problems_.add(key.at, "policy.duplicate_key",
                      base::concat("the key '", key.text, "' occurs twice, first in line ",
                                   first->second.line, "; remove one of them"));
      }
    }
  }

  const TextLimits& limits_;
  Problems& problems_;
  TextNode root_;
  std::vector<Open> open_;
  std::map<std::string, Anchored, std::less<>> anchors_;
  size_t documents_ = 0, nodes_ = 0, aliases_ = 0;
};

/// The parser of a text; reads it event by event.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  /// The next event, valid until the next call; nullptr after the last one.
  const yaml_event_t* next() {
    if (event_.type == YAML_STREAM_END_EVENT) return nullptr;
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) refuse();
    return &event_;
  }

 private:
  [[noreturn]] void refuse() const {
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const bool encoding = parser_.error == YAML_READER_ERROR;
    const Mark at = encoding ? SourceLines(text_).mark_of(parser_.problem_offset)
                             : mark_of(parser_.problem_mark);
    std::string text = base::concat("not valid YAML or JSON: ", parser_.problem);
    if (parser_.context != nullptr) text += base::concat(" ", parser_.context);
    if (parser_.context != nullptr && parser_.context_mark.line != parser_.problem_mark.line) {
      text += base::concat(" that starts in line ", parser_.context_mark.line + 1);
    }
    const size_t offset = encoding ? text_.size() : SourceLines(text_).offset_of(at);
    if (offset < text_.size() && text_[offset] == '\t') {
      text = "not valid YAML or JSON: a tab cannot indent a line; use spaces";
    }
    throw Stopped{at, "policy.syntax", std::move(text)};
  }

  std::string_view text_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

void parse(std::string_view text, Builder& builder, Problems& problems) {
  try {
    Parser parser(text);
    while (const yaml_event_t* const event = parser.next()) builder.add(*event);
  } catch (const Stopped& stopped) {
    problems.add(stopped.at, stopped.reason, stopped.text);
  }
}

/// Refuses bytes that are not valid in UTF-8 and control characters, because the YAML parser would
/// guess another encoding.
bool check_characters(std::string_view text, Problems& problems) {
  const auto bad = std::find_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && c != '\t' && c != '\n' && c != '\r') || byte >= 0xFE || byte == 0x7F;
  });
  if (bad == text.end()) return true;
  const auto offset = static_cast<size_t>(bad - text.begin());
  problems.add(SourceLines(text).mark_of(offset), "policy.syntax",
               base::concat("the byte ", int{static_cast<unsigned char>(*bad)},
                            " is not allowed in a policy; a policy must be UTF-8 text"));
  return false;
}

}  // namespace

std::optional<TextNode> read_yaml(std::string_view text, Problems& problems,
                                  const TextLimits& limits) {
  if (text.size() > limits.bytes) {
    problems.add({}, "policy.limit",
                 base::concat("the policy has ", text.size(), " bytes; at most ", limits.bytes,
                              " are read"));
    return std::nullopt;
  }
  if (!check_characters(text, problems)) return std::nullopt;
  Builder builder(limits, problems);
  const size_t before = problems.count();
  parse(text, builder, problems);
  if (problems.count() != before) return std::nullopt;
  return builder.take();
}

#else

std::optional<TextNode> read_yaml(std::string_view, Problems& problems, const TextLimits&) {
  problems.add({}, "policy.unsupported",
               "this build of opmux cannot read policy files: it was built without libyaml");
  return std::nullopt;
}
#endif

}  // namespace opmux::policy
