#include "figure_groups.hpp"
#include "figures.hpp"
#include "processor.hpp"

namespace opmux::bench {
namespace {

using Kernel = int32_t (*)(void*, const opmux_call*);
Kernel volatile bare_kernel = &nothing;

/// More shapes than a thread caches; all of them use the same plan. Successive calls have different
/// shapes.
std::vector<Tensors> other_shapes() {
  std::vector<Tensors> shapes;
  for (int64_t rows = 1; rows <= 16; ++rows) shapes.emplace_back(rows, 4096);
  return shapes;
}

/// Limits for one kind of call: multiples of the bare call (on processors with free and with costly
/// store forwarding), and a multiple of c10's unboxed call in the same run.
struct CallLimits {
  double bare_free, bare_costly, c10;
};
/// In the order of the subjects, without the bare call.
constexpr CallLimits kCallLimits[] = {{1.5, 3, 0.3}, {4, 8.5, 0.6}, {4, 8.5, 0.6}, {5, 9, 0.7},
                                      {7, 14, 0.9},  {9, 18, 1.0},  {15, 24, 1.15}};

std::vector<Figure> against_bare(const std::vector<Subject>& subjects) {
  const double bare = subjects[0].ns();
  std::vector<Figure> figures;
  for (size_t i = 0; i < std::size(kCallLimits); ++i) {
    const Subject& subject = subjects[i + 1];
    figures.push_back({subject.name, subject.ns() / bare,
                       limit_by_forwarding(kCallLimits[i].bare_free, kCallLimits[i].bare_costly),
                       "x"});
  }
  figures.front().note = "a bare call took " + std::to_string(bare) + " ns";
  return figures;
}

/// The ratio to PyTorch's dispatcher is comparable between processors, so a build without c10
/// misses a limit.
std::vector<Figure> against_c10(const std::vector<Subject>& subjects) {
  const bool built = subjects.size() == std::size(kCallLimits) + 2;
  std::vector<Figure> figures{
      {"c10 measured in this run", built ? 1.0 : 0.0, 1, "", true,
       built ? "" : "found no headers of torch 2.13: run tools/setup and build again"}};
  if (!built) return figures;
  const double c10 = subjects.back().ns();
  figures[0].note = "c10 takes " + std::to_string(c10 / subjects[0].ns()) + " x the bare call";
  for (size_t i = 0; i < std::size(kCallLimits); ++i) {
    const Subject& subject = subjects[i + 1];
    figures.push_back({subject.name + ", vs c10", subject.ns() / c10, kCallLimits[i].c10, "x"});
  }
  return figures;
}

}  // namespace

Subject bare_subject() {
  return {"bare", [](int count) {
            opmux_call call{};
            for (int i = 0; i < count; ++i) {
              if (bare_kernel(nullptr, &call) != OPMUX_OK) [[unlikely]]
                give_up({Code::failed, "", "the empty kernel failed"});
            }
          }};
}

std::vector<Figure> call_figures(World& world, int rounds) {
  const Operator op = world.operators[3];
  Tensors two(32, 4096);
  Tensors four = Tensors::rank4(2, 3, 4, 4096);
  std::vector<Tensors> walk;
  for (int i = 0; i < World::kOperators; ++i) walk.emplace_back(32, 4096);
  std::vector<Tensors> shapes = other_shapes();
  Plan plan = op.bind(two.y, two.x, two.w, 1e-6).value();
  must(plan.prepare(two.y, two.x, two.w, 1e-6));

  std::vector<Subject> subjects;
  subjects.push_back(bare_subject());
  // Captured references are copied to locals first, because programs that care about a call's cost
  // hold them in registers.
  subjects.push_back({"bound plan, run_unchecked on a prepared frame", [&](int count) {
                        Plan& bound = plan;
                        for (int i = 0; i < count; ++i) must(bound.run_unchecked());
                      }});
  subjects.push_back({"bound plan, checked", [&](int count) {
                        Plan& bound = plan;
                        const Tensors& t = two;
                        for (int i = 0; i < count; ++i) must(bound(t.y, t.x, t.w, 1e-6));
                      }});
  subjects.push_back({"handle, 3 tensors x 2 dims", [&](int count) {
                        const Operator handle = op;
                        const Tensors& t = two;
                        for (int i = 0; i < count; ++i) must(handle(t.y, t.x, t.w, 1e-6));
                      }});
  const Operator op4 = world.wide[0];
  subjects.push_back({"handle, 3 tensors x 4 dims", [&](int count) {
                        const Operator handle = op4;
                        const Tensors& t = four;
                        for (int i = 0; i < count; ++i) must(handle(t.y, t.x, t.w, 1e-6));
                      }});
  subjects.push_back({"handle, cycling through 300 operators", [&](int count) {
                        const Tensors* const tensors = walk.data();
                        const Operator* const handles = world.operators.data();
                        int at = 0;
                        for (int i = 0; i < count; ++i) {
                          const Tensors& t = tensors[at];
                          must(handles[at](t.y, t.x, t.w, 1e-6));
                          at = at + 7 < World::kOperators ? at + 7 : at + 7 - World::kOperators;
                        }
                      }});
  const Operator op5 = world.operators[5];
  subjects.push_back({"handle, after another shape of the same plan", [&](int count) {
                        const Operator handle = op5;
                        const Tensors* const tensors = shapes.data();
                        for (int i = 0; i < count; ++i) {
                          const Tensors& t = tensors[i & 15];
                          must(handle(t.y, t.x, t.w, 1e-6));
                        }
                      }});
  subjects.push_back({"by name", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          must(world.runtime.call("op3", two.y, two.x, two.w, 1e-6));
                        }
                      }});
  std::optional<Subject> c10 = c10_subject();
  if (c10) subjects.push_back(std::move(*c10));
  measure(subjects, rounds);

  std::vector<Figure> figures = against_bare(subjects);
  for (Figure& figure : against_c10(subjects)) figures.push_back(std::move(figure));
  return figures;
}

/// Builds new views for every call, with varying numbers of rows, as a program does that wraps the
/// tensors of another framework. The time to build the views is measured separately and subtracted.
Figure made_views_figure(World& world, int rounds) {
  const Operator op = world.operators[9];
  std::vector<Subject> subjects{bare_subject()};
  subjects.push_back({"making", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          const Tensors t(1 + (i & 63), 4096);
                          asm volatile("" : : "r"(&t) : "memory");
                        }
                      }});
  subjects.push_back({"handle, views made for the call", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          const Tensors t(1 + (i & 63), 4096);
                          must(op(t.y, t.x, t.w, 1e-6));
                        }
                      }});
  measure(subjects, rounds);
  const double call = subjects[2].ns() - subjects[1].ns();
  return {subjects[2].name, call / subjects[0].ns(), limit_by_forwarding(15, 34), "x"};
}

}  // namespace opmux::bench
