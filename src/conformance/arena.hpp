#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace opmux::conformance {

/// Memory between guard pages, which fault on any access. Move-only.
class Arena {
 public:
  Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::byte* begin() const { return begin_; }
  std::byte* end() const { return end_; }

 private:
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

/// One arena per tensor of a call, created on first use and reused by later calls. Not thread-safe.
class Arenas {
 public:
  Arena& at(size_t index) {
    while (arenas_.size() <= index) arenas_.push_back(std::make_unique<Arena>());
    return *arenas_[index];
  }

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace opmux::conformance
