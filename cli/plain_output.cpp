#include "cli/plain_output.hpp"

#include <string_view>

#include "base/text.hpp"

namespace opmux::cli {

PlainOutput::PlainOutput(std::ostream& stream) : stream_(stream), behind_(stream.rdbuf(this)) {}

PlainOutput::~PlainOutput() {
  sync();
  stream_.rdbuf(behind_);
}

bool PlainOutput::write(size_t size) {
  const std::string shown = base::without_controls(std::string_view(pending_).substr(0, size));
  pending_.erase(0, size);
  const auto wanted = static_cast<std::streamsize>(shown.size());
  return behind_->sputn(shown.data(), wanted) == wanted;
}

PlainOutput::int_type PlainOutput::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PlainOutput::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<size_t>(size));
  const size_t lines = pending_.rfind('\n') + 1;  // 0 without a newline, because npos + 1 is 0
  return lines == 0 || write(lines) ? size : 0;
}

int PlainOutput::sync() {
  const bool written = pending_.empty() || write(pending_.size());
  return written && behind_->pubsync() == 0 ? 0 : -1;
}

}  // namespace opmux::cli
