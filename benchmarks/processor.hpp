#pragma once

#include <string>

namespace opmux::bench {

/// The processor's name, family, model and the vector extensions that backends select kernels by,
/// for example
/// "Intel(R) Xeon(R) Processor @ 2.50GHz (family 6, model 85; avx512f avx512_vnni)".
std::string processor_name();

/// Latency of a load from an address that was just stored to, as a multiple of the latency of an
/// integer addition. Golden Cove, Zen 4 and later rename such loads and take about 1; older cores
/// take 4 to 6. A call writes its arguments into a frame that the kernel reads at once, so this
/// latency sets how many bare calls one dispatch costs. Measured once per process, because some
/// virtual machines change between both kinds, and the latency that is printed should be the one
/// that the limits follow from.
double store_forwarding_latency();

/// Returns the limit of a figure for this processor: `free` if store forwarding takes less than one
/// and a half additions, otherwise `costly`. A virtual machine of family 6, model 207 took 2.0 to
/// 2.5 in ten runs; why it is not 1 there is not known.
double limit_by_forwarding(double free, double costly);

}  // namespace opmux::bench
