#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace opmux::cli {

/// Shows control characters in the output of a stream as text for the lifetime of this object.
/// Status files, policies and recordings may come from other users, and their texts must not
/// control the terminal of the person who reads them. Writes whole lines, or the rest at a flush.
class PlainOutput final : public std::streambuf {
 public:
  explicit PlainOutput(std::ostream& stream);
  ~PlainOutput() override;
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  /// Writes the first `size` bytes of `pending_`.
  bool write(size_t size);

  std::ostream& stream_;
  std::streambuf* const behind_;
  std::string pending_;
};

}  // namespace opmux::cli
