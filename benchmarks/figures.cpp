#include "figures.hpp"

#include "figure_groups.hpp"
#include "reached.hpp"

namespace opmux::bench {

bool Figure::kept(double slack) const {
  for (const auto& [figure, reached] : kReached) {
    if (figure == name && within(reached, slack)) return true;
  }
  return holds(slack);
}

std::vector<Figure> all_figures(int rounds) {
  World world;
  std::vector<Figure> figures = call_figures(world, rounds);
  for (Figure& figure : class_figures(rounds)) figures.push_back(std::move(figure));
  figures.push_back(scaling_figure(world, rounds));
  figures.push_back(publication_figure(world));
  return figures;
}

}  // namespace opmux::bench
