// The points of the grid for tools/bench_vs_torch, which loads this library with ctypes: memory
// that torch and opmux share, and timed calls of opmux.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../rounds.hpp"
#include "grid.hpp"
#include "subject.hpp"

namespace opmux::bench {
namespace {

struct Points {
  Runtime runtime = Runtime::create().value();
  std::vector<Point> all = grid(Size::full);
  const Point* current = nullptr;
  std::unique_ptr<Buffers> buffers;
  std::string text;  // the string that the last function returned
};

nlohmann::json json_of(const Argument& argument, const Buffers& buffers) {
  nlohmann::json json = {{"name", argument.name}, {"number", argument.number}};
  if (argument.shape.empty()) return json;
  json["dtype"] = name_of(argument.dtype);
  json["shape"] = argument.shape;
  json["data"] = reinterpret_cast<uintptr_t>(buffers.data(argument.name));
  return json;
}

std::string describe(Points& points) {
  const Point& point = *points.current;
  nlohmann::json arguments = nlohmann::json::array();
  for (const Argument& argument : point.arguments) {
    arguments.push_back(json_of(argument, *points.buffers));
  }
  return nlohmann::json{{"operator", point.op},
                        {"point", point.label},
                        {"tokens", point.tokens},
                        {"hidden", point.hidden},
                        {"dtype", name_of(point.dtype)},
                        {"work", point.work},
                        {"arguments", std::move(arguments)},
                        {"chosen", chosen(points.runtime, point, *points.buffers)},
                        {"implementations", implementations(points.runtime, point.op)}}
      .dump();
}

double time_calls(Points& points, const char* id, int threads, int calls) {
  Dispatched dispatched(points.runtime, *points.current, *points.buffers, id, threads);
  double first = 0;
  if (dispatched.reason().empty()) first = dispatched.first();
  points.text = dispatched.reason();
  if (!points.text.empty()) return -1;
  if (calls == 0) return first;
  const double start = now_ns();
  for (int i = 0; i < calls; ++i) dispatched.run();
  return (now_ns() - start) / calls;
}

}  // namespace
}  // namespace opmux::bench

using opmux::bench::Points;

extern "C" {

// Returns null if the runtime cannot be created.
Points* opmux_points_open() try {
  auto points = std::make_unique<Points>();
  // Shares torch's OpenMP threads, as programs that use torch do. If there is no OpenMP runtime,
  // opmux uses a private thread pool.
  static_cast<void>(points->runtime.use_openmp());
  return points.release();
} catch (const std::exception& error) {
  std::fprintf(stderr, "points: %s\n", error.what());
  return nullptr;
}

int opmux_points_count(const Points* points) { return static_cast<int>(points->all.size()); }

// Returns the name of a point, for example "rms_norm bf16 ..."; valid until the next call.
const char* opmux_points_name(Points* points, int number) {
  points->text = points->all[static_cast<size_t>(number)].name();
  return points->text.c_str();
}

// Frees the memory of the previous point, allocates that of a new one and describes it as JSON.
const char* opmux_points_select(Points* points, int number) try {
  points->buffers.reset();
  points->current = &points->all[static_cast<size_t>(number)];
  points->buffers = std::make_unique<opmux::bench::Buffers>(points->runtime, *points->current);
  points->text = opmux::bench::describe(*points);
  return points->text.c_str();
} catch (const std::exception&) {
  return nullptr;
}

// Returns the nanoseconds per call without the first call, or of the first call if `calls` is 0;
// -1 if the implementation does not support the point.
double opmux_points_time(Points* points, const char* id, int threads, int calls) try {
  return opmux::bench::time_calls(*points, id, threads, calls);
} catch (const std::exception&) {
  return -1;
}

// Returns the reason for which opmux_points_time() last returned -1.
const char* opmux_points_reason(const Points* points) { return points->text.c_str(); }

}  // extern "C"
