#pragma once

#include <functional>
#include <vector>

#include "../rounds.hpp"

namespace opmux::bench {

/// Figures about the cost of many threads with many plans each.
std::vector<Figure> plans_of_threads();
/// Figures about reading the counters of a thousand threads.
std::vector<Figure> counters_of_threads();
/// Figures about registries of many operators.
std::vector<Figure> many_operators();
/// Figures about the memory that many shapes of one operator take.
std::vector<Figure> many_shapes();
/// Figures about processes that start at the same time with one state folder.
std::vector<Figure> starting_processes();
/// Figures about processes that follow one policy file.
std::vector<Figure> reloading_processes();
/// Figures about other files that are written near a followed policy file.
std::vector<Figure> foreign_files();

/// Memory of this process that is in RAM, in MB (10^6 bytes).
double resident_mb();

/// The exponent e of a quantity that grows as n^e, from two measurements.
double exponent(double small, double small_value, double large, double large_value);

/// Runs `measure` in a forked child and returns its figures, so that no measurement sees the memory
/// and the threads of another one. The caller must have no threads. Throws if the child fails.
std::vector<Figure> in_child(const std::function<std::vector<Figure>()>& measure);

}  // namespace opmux::bench
