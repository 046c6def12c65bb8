// A tuning bundle on arbitrary bytes, as they are, with digests that match, and as a text: accepted
// rows must be the same after they were written in either form, and can be pooled.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "tune/bundle.hpp"
#include "tuner/bundle_writer.hpp"
#include "tuner/merge.hpp"
#include "tuner/tuning_text.hpp"

namespace {

using opmux::tune::Bundle;
using opmux::tune::TuningSet;

void insist(bool holds) {
  if (!holds) std::abort();
}

opmux::Result<TuningSet> read(const std::string& bytes) {
  opmux::Result<Bundle> bundle = Bundle::open(std::as_bytes(std::span(bytes)));
  if (!bundle) return bundle.error();
  return bundle->read_all();
}

void use(const TuningSet& set) {
  const auto bytes = opmux::tuner::write_bundle(set);
  if (!bytes) return;
  const auto again = read(*bytes);
  insist(again.has_value() && opmux::tuner::compare(set, *again).empty());
  const auto merged = opmux::tuner::merge({set, set});
  insist(merged.has_value());
  insist(opmux::tuner::write_bundle(*merged).has_value());
  const auto text = opmux::tuner::read_text(opmux::tuner::text_of(set));
  insist(text.has_value() && opmux::tuner::compare(set, *text).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto set = read(bytes)) use(*set);
  if (const auto set = opmux::tuner::read_text(bytes)) use(*set);
  opmux::tuner::seal_bundle(bytes);
  if (const auto set = read(bytes)) use(*set);
  return 0;
}
