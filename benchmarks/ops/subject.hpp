#pragma once

#include <memory>
#include <string>
#include <vector>

#include "buffers.hpp"

namespace opmux::bench {

/// Calls of one point under a policy that requires one implementation.
class Dispatched {
 public:
  /// If the implementation cannot be called, reason() says why, and first() and run() must not be
  /// called.
  Dispatched(Runtime& runtime, const Point& point, const Buffers& buffers, std::string id,
             int threads);

  const std::string& reason() const { return reason_; }
  const std::string& id() const { return id_; }
  /// Makes the first call and returns its nanoseconds. If the call is declined, sets reason().
  double first();
  /// Makes one more call. Throws if it fails.
  void run() const;

 private:
  const Buffers& buffers_;
  std::string id_, reason_;
  Operator op_;
  CallOptions options_;
  std::unique_ptr<PolicyScope> scope_;
};

/// Ids of the available implementations of an operator that use CPU memory.
std::vector<std::string> implementations(const Runtime& runtime, const std::string& op);
/// Id of the implementation that a plain call of this point would choose.
std::string chosen(const Runtime& runtime, const Point& point, const Buffers& buffers);

}  // namespace opmux::bench
