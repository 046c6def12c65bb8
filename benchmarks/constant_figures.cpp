#include <deque>

#include "figure_groups.hpp"

namespace opmux::bench {

std::vector<Figure> constant_figures(int rounds) {
  constexpr int kConstants = 32;
  Runtime runtime = Runtime::create({.environment = {{}}, .backends = false}).value();
  must(runtime.define("scale(out Tensor y[..., H], Tensor x[..., H], const Tensor w[H])"));
  const Registration held =
      runtime
          .implement(
              {.id = "scale/bench.packed",
               .kind = Kind::default_,
               .kernel = {.run = nothing, .create = make_instance, .destroy = keep_instance}})
          .value();
  const Operator op = runtime.op("scale").value();
  const Tensors t(32, 4096);
  std::deque<Constant> constants;
  for (int i = 0; i < kConstants; ++i) constants.push_back(runtime.constant(t.w).value());
  Plan plan = op.bind(t.y, t.x, constants[0]).value();

  Plan unpacked = op.bind(t.y, t.x, t.w).value();

  // Each subject with a packed constant follows the same call with a plain tensor.
  std::vector<Subject> subjects;
  subjects.push_back({"a tensor", [&](int count) {
                        for (int i = 0; i < count; ++i) must(op(t.y, t.x, t.w));
                      }});
  subjects.push_back({"handle, 32 packed constants in turn", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          must(op(t.y, t.x, constants[static_cast<size_t>(i % kConstants)]));
                        }
                      }});
  subjects.push_back({"a tensor and two threads allowed", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          must(op.with({.max_threads = 2})(t.y, t.x, t.w));
                        }
                      }});
  subjects.push_back({"handle, packed constant and two threads allowed", [&](int count) {
                        for (int i = 0; i < count; ++i) {
                          must(op.with({.max_threads = 2})(t.y, t.x, constants[0]));
                        }
                      }});
  subjects.push_back({"bound plan, a tensor", [&](int count) {
                        for (int i = 0; i < count; ++i) must(unpacked(t.y, t.x, t.w));
                      }});
  subjects.push_back({"bound plan, packed constant", [&](int count) {
                        for (int i = 0; i < count; ++i) must(plan(t.y, t.x, constants[0]));
                      }});
  measure(subjects, rounds);
  constexpr double kLimits[] = {8, 2, 2};
  std::vector<Figure> figures;
  for (size_t i = 0; i < subjects.size(); i += 2) {
    figures.push_back({subjects[i + 1].name + ", against a tensor",
                       subjects[i + 1].against(subjects[i]), kLimits[i / 2], "x"});
  }
  return figures;
}

}  // namespace opmux::bench
