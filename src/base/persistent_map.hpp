#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace opmux::base {

/// An ordered map that is copied in constant time. Copies share their nodes; a change copies only
/// the nodes on the path to the changed entry, about 2 ln(size) of them. Entries never move, so a
/// pointer to one is valid as long as some copy contains it. Different copies may be used by
/// different threads at the same time.
///
/// The nodes form a treap: a search tree by key that is a heap by a hash of the key. Its shape
/// depends only on the keys, so two copies differ only where their entries do, which
/// for_each_difference() uses.
template <class Key, class Value>
class PersistentMap {
  struct Node;
  using NodePtr = std::shared_ptr<const Node>;

 public:
  using Entry = std::pair<const Key, Value>;

  /// Visits the entries in the order of their keys.
  class Iterator {
   public:
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    using pointer = const Entry*;
    using reference = const Entry&;

    Iterator() = default;
    explicit Iterator(const Node* root) { descend(root); }
    const Entry& operator*() const { return *path_.back()->entry; }
    const Entry* operator->() const { return path_.back()->entry.get(); }
    Iterator& operator++() {
      const Node* const done = path_.back();
      path_.pop_back();
      descend(done->right.get());
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return top() == other.top(); }

   private:
    void descend(const Node* node) {
      for (; node != nullptr; node = node->left.get()) path_.push_back(node);
    }
    const Node* top() const { return path_.empty() ? nullptr : path_.back(); }

    std::vector<const Node*> path_;  ///< nodes that are not visited yet, the next one last
  };
  using const_iterator = Iterator;

  Iterator begin() const { return Iterator(root_.get()); }
  Iterator end() const { return Iterator(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Returns the entry with this key, or null.
  template <class Like>
  const Entry* find(const Like& key) const {
    const Node* node = root_.get();
    while (node != nullptr) {
      if (key < node->entry->first) {
        node = node->left.get();
      } else if (node->entry->first < key) {
        node = node->right.get();
      } else {
        return node->entry.get();
      }
    }
    return nullptr;
  }

  /// Returns the value of a key that the map contains.
  template <class Like>
  const Value& at(const Like& key) const {
    return find(key)->second;
  }

  /// Adds an entry or replaces the one with the same key.
  void put(Key key, Value value) {
    const uint64_t priority = priority_of(key);
    const bool added = find(key) == nullptr;
    root_ = put(root_, std::make_shared<const Entry>(std::move(key), std::move(value)), priority);
    size_ += added ? 1 : 0;
  }

  /// Calls `visit(before, after)` for each key whose entries differ between two maps. One of the
  /// two pointers is null if only the other map has the key. The time depends on the number of
  /// differences, not on the size, if one map was made by changing a copy of the other.
  template <class Visit>
  friend void for_each_difference(const PersistentMap& before, const PersistentMap& after,
                                  Visit&& visit) {
    constexpr const Entry* kNone = nullptr;
    Walk old(before.root_.get()), now(after.root_.get());
    while (!old.done() || !now.done()) {
      if (old.subtree() != nullptr && old.subtree() == now.subtree()) {
        old.skip();
        now.skip();
      } else if (old.expand_before(now)) {
        old.expand();
      } else if (now.expand_before(old)) {
        now.expand();
      } else if (now.done() || (!old.done() && old.key() < now.key())) {
        visit(old.take(), kNone);
      } else if (old.done() || now.key() < old.key()) {
        visit(kNone, now.take());
      } else {
        const Entry* const was = old.take();
        const Entry* const is = now.take();
        if (was != is) visit(was, is);
      }
    }
  }

 private:
  struct Node {
    std::shared_ptr<const Entry> entry;
    uint64_t priority;
    NodePtr left, right;
  };

  /// Visits a tree in the order of its keys and lets the caller skip subtrees.
  class Walk {
   public:
    explicit Walk(const Node* root) { push(root); }
    bool done() const { return pending_.empty(); }
    /// The subtree that comes next; null if an entry comes next.
    const Node* subtree() const {
      return done() || pending_.back().expanded ? nullptr : pending_.back().node;
    }
    void skip() { pending_.pop_back(); }
    /// Whether a subtree comes next and its root cannot be below the subtree that comes next in
    /// `other`. Expanding the higher root first makes both walks meet at every shared subtree.
    bool expand_before(const Walk& other) const {
      const Node* const own = subtree();
      const Node* const others = other.subtree();
      return own != nullptr && (others == nullptr || own->priority >= others->priority);
    }
    void expand() {
      const Node* const node = pending_.back().node;
      pending_.pop_back();
      push(node->right.get());
      pending_.push_back({node, true});
      push(node->left.get());
    }
    const Key& key() const { return pending_.back().node->entry->first; }
    const Entry* take() {
      const Entry* const entry = pending_.back().node->entry.get();
      pending_.pop_back();
      return entry;
    }

   private:
    struct Pending {
      const Node* node;
      bool expanded;  ///< only the entry of the node comes next
    };
    void push(const Node* node) {
      if (node != nullptr) pending_.push_back({node, false});
    }
    std::vector<Pending> pending_;
  };

  static uint64_t priority_of(const Key& key) {
    uint64_t bits = std::hash<Key>{}(key) + 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
  }

  static NodePtr make(std::shared_ptr<const Entry> entry, uint64_t priority, NodePtr left,
                      NodePtr right) {
    return std::make_shared<const Node>(
        Node{std::move(entry), priority, std::move(left), std::move(right)});
  }

  /// Equal priorities are ordered by key, so that the shape is unique.
  static bool above(const Node& node, const Key& key, uint64_t priority) {
    return node.priority > priority || (node.priority == priority && node.entry->first < key);
  }

  static NodePtr put(const NodePtr& tree, std::shared_ptr<const Entry> entry, uint64_t priority) {
    if (tree == nullptr) return make(std::move(entry), priority, nullptr, nullptr);
    const Key& key = entry->first;
    const Node& root = *tree;
    const bool left = key < root.entry->first;
    if (!left && !(root.entry->first < key)) {
      return make(std::move(entry), priority, root.left, root.right);
    }
    if (!above(root, key, priority)) {
      auto [less, more] = split(tree, key);
      return make(std::move(entry), priority, std::move(less), std::move(more));
    }
    if (left) {
      NodePtr changed = put(root.left, std::move(entry), priority);
      return make(root.entry, root.priority, std::move(changed), root.right);
    }
    NodePtr changed = put(root.right, std::move(entry), priority);
    return make(root.entry, root.priority, root.left, std::move(changed));
  }

  /// The entries below and above a key that the tree does not contain.
  static std::pair<NodePtr, NodePtr> split(const NodePtr& tree, const Key& key) {
    if (tree == nullptr) return {};
    const Node& root = *tree;
    if (key < root.entry->first) {
      auto [less, more] = split(root.left, key);
      return {std::move(less), make(root.entry, root.priority, std::move(more), root.right)};
    }
    auto [less, more] = split(root.right, key);
    return {make(root.entry, root.priority, root.left, std::move(less)), std::move(more)};
  }

  NodePtr root_;
  size_t size_ = 0;
};

}  // namespace opmux::base
