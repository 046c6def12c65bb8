// The status-file reader on arbitrary bytes: an accepted file must round-trip. Half of the inputs
// get a valid checksum, so that the code behind the checksum test is reached.
#include <cstdlib>
#include <string>

#include "base/line_records.hpp"
#include "status/status_text.hpp"

namespace {

void try_page(std::string_view text) {
  const auto page = opmux::status_file::parse_status_file(text);
  if (!page) {
    if (!page.error().reason().starts_with("state_page.")) std::abort();
    return;
  }
  const auto& own = page->process.runtimes.at(0);
  const std::string body = status_file_body(*page);
  const auto again = opmux::status_file::parse_status_file(
      opmux::status_file::status_file_text(body, own.written, own.updates));
  if (!again || status_file_body(*again) != body) std::abort();
  if (to_json(page->process) != to_json(again->process)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_page(text);
  try_page(opmux::base::checked_line(text));
  return 0;
}
