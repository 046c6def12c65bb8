#pragma once

#include <vector>

#include "rounds.hpp"
#include "world.hpp"

// Groups of figures; each function measures and returns figures with their limits.
namespace opmux::bench {

/// Calls through plans, handles and names, relative to the bare call and to c10's no-op if built.
std::vector<Figure> call_figures(World& world, int rounds);
/// Handle calls with views that are built for each call.
Figure made_views_figure(World& world, int rounds);
/// Calls with new shapes: of a known class, and of a new class (a cold decision).
std::vector<Figure> class_figures(int rounds);
/// Calls with packed constants, and with call options.
std::vector<Figure> constant_figures(int rounds);
/// Calls with several prepared shapes, packed weights or tags in turn, against calls with one.
std::vector<Figure> plan_figures(int rounds);
/// Calls whose scalars are converted, and calls that are timed, against calls that are not.
std::vector<Figure> argument_figures(int rounds);
/// Time to load and publish policy texts with many rules.
std::vector<Figure> policy_figures();
/// Throughput of two threads relative to one.
Figure scaling_figure(World& world, int rounds);
/// Tail latency of handle calls while 1,000 policies per second are published.
Figure publication_figure(World& world);

/// Additional cost of a call when the crash journal and its signal handler are on.
Figure journal_figure(World& world, int rounds);
/// Loss of throughput of 20 us kernels when the shadow check samples one call in 1024.
Figure shadow_figure(int rounds);

/// The bare call that the other subjects are compared with.
Subject bare_subject();

}  // namespace opmux::bench
