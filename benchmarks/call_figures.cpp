#include "figure_groups.hpp"
#include "figures.hpp"

namespace opmux::bench {
namespace {

using Kernel = int32_t (*)(void*, const opmux_call*);
Kernel volatile bare_kernel = &nothing;

/// More shapes than a thread keeps plans, all of one plan: each call meets another shape than the
/// last.
std::vector<Tensors> other_shapes() {
  std::vector<Tensors> shapes;
  for (int64_t rows = 1; rows <= 16; ++rows) shapes.emplace_back(rows, 4096);
  return shapes;
}

}  // namespace

Subject bare_subject() {
  return {"bare", [](int count) {
            opmux_call call{};
            for (int i = 0; i < count; ++i) {
              if (bare_kernel(nullptr, &call) != OPMUX_OK) [[unlikely]]
                give_up({Code::failed, "", "the kernel that does nothing failed"});
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
  // What a lambda refers to is made local first: programs that care have it in registers.
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
  subjects.push_back({"handle, walking 300 operators", [&](int count) {
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
  subjects.push_back({"handle, after another shape of the plan", [&](int count) {
                        const Operator handle = op5;
                        const Tensors* const tensors = shapes.data();
                        for (int i = 0; i < count; ++i) {
                          const Tensors& t = tensors[i & 15];
                          must(handle(t.y, t.x, t.w, 1e-6));
                        }
                      }});
  const size_t compared_with_c10 = subjects.size();
  subjects.push_back({"by name", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          must(world.runtime.call("op3", two.y, two.x, two.w, 1e-6));
                        }
                      }});
  if (auto c10 = c10_subject()) subjects.push_back(std::move(*c10));
  measure(subjects, rounds);

  const double limits[] = {0, 1.5, 4, 4, 5, 7, 9, 15};
  const double bare = subjects[0].ns();
  std::vector<Figure> figures;
  for (size_t i = 1; i < 8; ++i) {
    figures.push_back({subjects[i].name, subjects[i].ns() / bare, limits[i], "x"});
  }
  figures.front().note = "a bare call took " + std::to_string(bare) + " ns";
  if (subjects.size() == 9) {
    double slowest = 0;
    for (size_t i = 1; i < compared_with_c10; ++i) slowest = std::max(slowest, subjects[i].ns());
    figures.push_back(
        {"c10's unboxed no-op against the slowest of those", subjects[8].ns() / slowest, 1, "x",
         true, "c10 takes " + std::to_string(subjects[8].ns() / bare) + " x the bare call"});
  }
  return figures;
}

/// Views that no call has met, each with another number of rows: what reading another program's
/// tensors comes to. Their making is measured apart and taken off.
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
  return {subjects[2].name, call / subjects[0].ns(), 15, "x"};
}

}  // namespace opmux::bench
