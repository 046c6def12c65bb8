#pragma once

#include <vector>

#include "rounds.hpp"
#include "world.hpp"

namespace opmux::bench {

/// Calls through plans, handles and names against the bare call and, if there, c10's no-op.
std::vector<Figure> call_figures(World& world, int rounds);
/// Handle calls with views that no call has met.
Figure made_views_figure(World& world, int rounds);
/// Shapes never seen: of a known class, and of a new one (a cold decision).
std::vector<Figure> class_figures(int rounds);
/// Calls with constants that are packed, and with options.
std::vector<Figure> constant_figures(int rounds);
/// Texts of many rules put in force.
std::vector<Figure> policy_figures();
/// Two threads against one.
Figure scaling_figure(World& world, int rounds);
/// The slow tail of guarded calls while 1,000 policies a second are published.
Figure publication_figure(World& world);

/// What the crash journal, with its handler, adds to a call.
Figure journal_figure(World& world, int rounds);
/// What the shadow check of one call in 1024 takes of the throughput of 20 us kernels.
Figure shadow_figure(int rounds);

/// The bare call that everything is compared with.
Subject bare_subject();

}  // namespace opmux::bench
