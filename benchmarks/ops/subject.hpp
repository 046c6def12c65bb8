#pragma once

#include <memory>
#include <string>
#include <vector>

#include "buffers.hpp"

namespace opmux::bench {

/// Calls of one point that only one implementation may answer.
class Dispatched {
 public:
  /// reason() says why it cannot be called; then nothing else may be.
  Dispatched(Runtime& runtime, const Point& point, const Buffers& buffers, std::string id,
             int threads);

  const std::string& reason() const { return reason_; }
  const std::string& id() const { return id_; }
  /// The first call, in nanoseconds; it may still be declined, see reason().
  double first();
  /// One more call. Ends the program if it fails.
  void run() const;

 private:
  const Buffers& buffers_;
  std::string id_, reason_;
  Operator op_;
  CallOptions options_;
  std::unique_ptr<PolicyScope> scope_;
};

/// Available implementations of an operator, by id.
std::vector<std::string> implementations(const Runtime& runtime, const std::string& op);
/// The one that a plain call of this point would run.
std::string chosen(const Runtime& runtime, const Point& point, const Buffers& buffers);

}  // namespace opmux::bench
