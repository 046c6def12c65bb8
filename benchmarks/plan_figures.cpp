#include <deque>

#include "figure_groups.hpp"

namespace opmux::bench {
namespace {

int32_t prepare(void*, const opmux_call*, void** prepared) {
  static int made;
  *prepared = &made;
  return OPMUX_OK;
}

/// An operator whose implementation prepares a state for each shape, and one that packs weights.
struct Layers {
  static constexpr int kMost = 16;

  Layers() : runtime(Runtime::create({.environment = {{}}, .backends = false}).value()) {
    must(runtime.define("shaped(out Tensor y[N, H], Tensor x[N, H], Tensor w[H])"));
    must(runtime.define("packed(out Tensor y[N, H], Tensor x[N, H], const Tensor w[H])"));
    held.push_back(runtime
                       .implement({.id = "shaped/bench.one",
                                   .kind = Kind::default_,
                                   .kernel = {.run = nothing, .plan = prepare}})
                       .value());
    held.push_back(runtime
                       .implement({.id = "packed/bench.one",
                                   .kind = Kind::default_,
                                   .kernel = {.run = nothing,
                                              .plan = prepare,
                                              .create = make_instance,
                                              .destroy = keep_instance}})
                       .value());
    for (int i = 0; i < kMost; ++i) {
      shapes.emplace_back(8, 64 * (i + 1));
      weights.push_back(runtime.constant(shapes.back().w).value());
      tags.push_back(runtime.tag("layer." + std::to_string(i)));
    }
    must(runtime.define("tagged(out Tensor y[N, H], Tensor x[N, H], Tensor w[H])"));
    held.push_back(
        runtime
            .implement(
                {.id = "tagged/bench.one", .kind = Kind::default_, .kernel = {.run = nothing}})
            .value());
  }

  Runtime runtime;
  std::vector<Registration> held;
  std::vector<Tensors> shapes;
  std::deque<Constant> weights;
  std::vector<Tag> tags;
};

/// Measures `call(i)` with i counting through 1, 5 and 16 values in turn.
template <class Call>
void add_figures(std::vector<Figure>& figures, int rounds, const std::string& what, Call call) {
  std::vector<Subject> subjects;
  for (const size_t several : {1, 5, 16}) {
    subjects.push_back({std::to_string(several) + " " + what, [&call, several](int count) {
                          size_t at = 0;
                          for (int i = 0; i < count; ++i) {
                            call(at);
                            at = at + 1 < several ? at + 1 : 0;
                          }
                        }});
  }
  measure(subjects, rounds);
  for (size_t i = 1; i < subjects.size(); ++i) {
    figures.push_back({"handle, " + subjects[i].name + " in turn, against one",
                       subjects[i].ns() / subjects[0].ns(), 2, "x"});
  }
}

}  // namespace

std::vector<Figure> plan_figures(int rounds) {
  const Layers layers;
  const Operator shaped = layers.runtime.op("shaped").value();
  const Operator packed = layers.runtime.op("packed").value();
  const Operator tagged = layers.runtime.op("tagged").value();
  std::vector<Figure> figures;
  add_figures(figures, rounds, "prepared shapes", [&](size_t i) {
    const Tensors& t = layers.shapes[i];
    must(shaped(t.y, t.x, t.w));
  });
  add_figures(figures, rounds, "packed weights", [&](size_t i) {
    const Tensors& t = layers.shapes[i];
    must(packed(t.y, t.x, layers.weights[i]));
  });
  add_figures(figures, rounds, "tags", [&](size_t i) {
    const Tensors& t = layers.shapes[0];
    must(tagged.with({.tag = layers.tags[i]})(t.y, t.x, t.w));
  });
  return figures;
}

}  // namespace opmux::bench
