#include "policy/files/yaml_reader.hpp"

#ifdef OPMUX_YAML
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/node/node.h>
#include <yaml-cpp/parser.h>
#endif

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"

namespace opmux::policy {

#ifdef OPMUX_YAML
namespace {

Mark mark_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

/// Exception that ends parsing when a limit is exceeded or the document is not acceptable.
struct Stopped {
  Mark at;
  std::string_view reason;
  std::string text;
};

[[noreturn]] void stop(const YAML::Mark& at, std::string text) {
  throw Stopped{mark_of(at), "policy.limit", std::move(text)};
}

size_t count_nodes(const TextNode& node) {
  size_t count = 1;
  for (const TextNode& item : node.items) count += count_nodes(item);
  return count;
}

/// Builds nodes from the parser's events and stops when a limit is exceeded.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const TextLimits& limits, Problems& problems) : limits_(limits), problems_(problems) {}

  TextNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    throw Stopped{mark_of(mark), "policy.syntax",
                  "a second document starts here; a policy must be a single document"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish(make(mark, TextNode::Kind::null), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    TextNode node = make(mark, TextNode::Kind::scalar);
    node.quoted = tag == "!";
    refuse_tag(mark, node.quoted ? "" : tag);
    node.text = value;
    finish(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (++aliases_ > limits_.aliases) {
      stop(mark, base::concat("more than ", limits_.aliases, " aliases"));
    }
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Stopped{mark_of(mark), "policy.syntax", "an alias inside the node that it refers to"};
    }
    count(mark, found->second.nodes - 1);
    TextNode copy = make(mark, TextNode::Kind::null);
    const Mark at = copy.at;
    copy = found->second.node;
    copy.at = at;
    finish(std::move(copy), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, TextNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, TextNode::Kind::map);
  }
  void OnMapEnd() override {
    check_keys(open_.back().node);
    close();
  }

 private:
  struct Open {
    TextNode node;
    YAML::anchor_t anchor = 0;
  };
  struct Anchored {
    TextNode node;
    size_t nodes = 0;
  };

  void count(const YAML::Mark& mark, size_t more) {
    nodes_ += more;
    if (nodes_ > limits_.nodes) {
      stop(mark, base::concat("more than ", limits_.nodes, " keys and values in one text"));
    }
  }

  TextNode make(const YAML::Mark& mark, TextNode::Kind kind) {
    count(mark, 1);
    TextNode node;
    node.kind = kind;
    node.at = mark_of(mark);
    return node;
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    problems_.add(mark_of(mark), "policy.syntax",
                  base::concat("the tag '", tag, "': tags are not allowed in a policy"));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            TextNode::Kind kind) {
    if (open_.size() >= limits_.depth) {
      stop(mark, base::concat("nested more than ", limits_.depth, " deep"));
    }
    refuse_tag(mark, tag);
    open_.push_back({make(mark, kind), anchor});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.node), done.anchor);
  }

  void finish(TextNode node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = {node, count_nodes(node)};
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
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t documents_ = 0, nodes_ = 0, aliases_ = 0;
};

void parse(std::string_view text, Builder& builder, Problems& problems) {
  std::istringstream in{std::string(text)};
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stopped& stopped) {
    problems.add(stopped.at, stopped.reason, stopped.text);
  } catch (const YAML::DeepRecursion& error) {
    problems.add(mark_of(error.mark), "policy.limit", "nested too deep");
  } catch (const YAML::Exception& error) {
    problems.add(mark_of(error.mark), "policy.syntax",
                 base::concat("not valid YAML or JSON: ", error.msg));
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
               "this build of opmux cannot read policy files: it was built without yaml-cpp");
  return std::nullopt;
}
#endif

}  // namespace opmux::policy
