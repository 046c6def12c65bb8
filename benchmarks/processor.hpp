#pragma once

#include <string>

namespace opmux::bench {

/// The processor's name, family, model and the vector extensions that kernels choose by, as
/// "Intel(R) Xeon(R) Processor @ 2.50GHz (family 6, model 85; avx512f avx512_vnni)".
std::string processor_name();

/// Latency of a load from an address that was just stored to, as a multiple of the latency of an
/// integer addition. Golden Cove, Zen 4 and later rename such loads and take about 1; older cores
/// take 4 to 6. A call writes its arguments into a frame that the kernel reads at once, so this
/// latency sets how many bare calls one dispatch costs.
double store_forwarding_latency();

/// The limit that applies here of the two for a figure that depends on store forwarding: `free`
/// where it costs less than two additions, `costly` elsewhere. Measured once.
double limit_by_forwarding(double free, double costly);

}  // namespace opmux::bench
