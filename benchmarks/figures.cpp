#include "figures.hpp"

#include "figure_groups.hpp"

namespace opmux::bench {

std::vector<Figure> all_figures(int rounds) {
  World world;
  std::vector<Figure> figures = call_figures(world, rounds);
  figures.push_back(made_views_figure(world, rounds));
  for (Figure& figure : class_figures(rounds)) figures.push_back(std::move(figure));
  for (Figure& figure : constant_figures(rounds)) figures.push_back(std::move(figure));
  for (Figure& figure : plan_figures(rounds)) figures.push_back(std::move(figure));
  for (Figure& figure : argument_figures(rounds)) figures.push_back(std::move(figure));
  figures.push_back(journal_figure(world, rounds));
  figures.push_back(shadow_figure(rounds));
  for (Figure& figure : policy_figures()) figures.push_back(std::move(figure));
  figures.push_back(scaling_figure(world, rounds));
  figures.push_back(publication_figure(world));
  return figures;
}

}  // namespace opmux::bench
