#include <opmux/replay.hpp>

#include <cmath>
#include <filesystem>

#include "replay/recording.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

/// y = 2 x, rounded to the tensors' type; a reference, and an implementation that skips the
/// remainder after whole tiles of 16.
constexpr const char* kTimesTwo = "twice(out Tensor y[..., H], Tensor x[..., H], float by = 2)";

void multiply(CallFrame& call, int64_t tile) {
  const TensorView y = call.tensor(0), x = call.tensor(1);
  const int64_t columns = x.dim(x.rank() - 1), rows = columns == 0 ? 0 : x.elements() / columns;
  const int64_t stride = x.rank() > 1 ? x.stride(x.rank() - 2) : columns;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) {
      const bool left_over = i >= columns / tile * tile;
      const float value = static_cast<const float*>(x.data())[row * stride + i];
      static_cast<float*>(y.data())[row * columns + i] =
          left_over ? 0 : value * static_cast<float>(call.f64(2));
    }
  }
}

struct ReplayScene : Stage {
  explicit ReplayScene(Options options = bare()) : Stage(std::move(options)) {
    twice = define(kTimesTwo);
    add({.id = "twice/plain.one", .kind = Kind::reference, .run = [](CallFrame& call) {
           multiply(call, 1);
           return Outcome::ok;
         }});
    add({.id = "twice/tiles.one", .kind = Kind::default_, .run = [](CallFrame& call) {
           multiply(call, 16);
           return Outcome::ok;
         }});
  }

  /// The recording of a call of twice/tiles.one.
  std::string recorded(int64_t rows, int64_t h, bool inputs = true) {
    replay::Recording r;
    r.version = "0.1.0";
    r.op = "twice";
    r.schema = kTimesTwo;
    r.implementation = "twice/tiles.one";
    r.cause = replay::Cause::diverged;
    r.reason = "shadow.value";
    r.call_class = "any";
    replay::RecordedArgument y, x;
    y.name = "y", x.name = "x";
    for (replay::RecordedArgument* one : {&y, &x}) {
      one->tag = ArgTag::tensor;
      one->tensor.dtype = f32;
      one->tensor.shape = {rows, h};
      one->tensor.strides = {h, 1};
      one->tensor.alignment = 4;
    }
    x.tensor.contents = replay::Contents::known;
    x.tensor.sha256 = std::string(64, '0');
    for (int64_t i = 0; inputs && i < rows * h; ++i) {
      const float value = 1.0F + static_cast<float>(i % 7);
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      x.tensor.bytes.insert(x.tensor.bytes.end(), bytes, bytes + sizeof value);
    }
    r.arguments = {y, x};
    write_file(folder.at("call"), to_file(r));
    return folder.at("call");
  }

  ReplayReport replay(const std::string& path, const ReplayOptions& options = {}) {
    return runtime.replay().run(path, options).value();
  }

  TemporaryFolder folder;
  Operator twice = runtime.op("rms_norm").value();
};

TEST(Replay, reproduces_a_wrong_element_and_names_it) {
  ReplayScene scene;
  const ReplayReport report = scene.replay(scene.recorded(3, 40));
  EXPECT_EQ(report.verdict(), ReplayVerdict::differs);
  EXPECT_EQ(report.reference, "twice/plain.one");
  ASSERT_TRUE(report.implementations.at(0).difference);
  EXPECT_EQ(report.implementations[0].difference->index, (std::vector<int64_t>{0, 32}));
  EXPECT_TRUE(report.implementations[0].text.starts_with(
      "twice/tiles.one differs from the reference at y[0,32]: 0 instead of 10 (tolerance "))
      << report.implementations[0].text;
  EXPECT_FALSE(report.other_values);
  EXPECT_GT(scene.kernel("twice/tiles.one").runs, 0u);
  EXPECT_GT(scene.kernel("twice/plain.one").runs, 0u);
}

TEST(Replay, agrees_once_the_implementation_is_right) {
  ReplayScene scene;
  const std::string path = scene.recorded(3, 40);
  scene.kernel("twice/tiles.one").body = [](CallFrame& call) {
    multiply(call, 1);
    return Outcome::ok;
  };
  const ReplayReport report = scene.replay(path);
  EXPECT_EQ(report.verdict(), ReplayVerdict::agrees);
  EXPECT_EQ(report.to_string(),
            "twice  y=f32[3,40] x=f32[3,40]\n  diverged in twice/tiles.one (shadow.value)\n"
            "agrees  twice/tiles.one agrees with twice/plain.one\n");
}

TEST(Replay, runs_the_requested_implementation) {
  ReplayScene scene;
  const std::string path = scene.recorded(1, 17);
  const ReplayReport report =
      scene.replay(path, {.implementations = {"twice/plain.one", "twice/tiles.one"}});
  EXPECT_EQ(report.implementations.at(0).verdict, ReplayVerdict::agrees);
  EXPECT_EQ(report.implementations.at(1).verdict, ReplayVerdict::differs);
  EXPECT_EQ(report.verdict(), ReplayVerdict::differs);
  const ReplayReport missing = scene.replay(path, {.implementations = {"twice/tiles.two"}});
  EXPECT_EQ(missing.verdict(), ReplayVerdict::cannot);
  EXPECT_EQ(missing.implementations[0].text,
            "there is no implementation 'twice/tiles.two' here; did you mean 'twice/tiles.one'?");
}

TEST(Replay, ends_at_the_smallest_call_that_is_still_wrong) {
  ReplayScene scene;
  const ReplayReport report = scene.replay(scene.recorded(9, 999), {.minimize = true});
  EXPECT_EQ(report.smaller_arguments, "y=f32[1,1] x=f32[1,1]");
  EXPECT_LT(report.tried, 40u);
  write_file(scene.folder.at("smaller"), report.smaller);
  const ReplayReport again = scene.replay(scene.folder.at("smaller"));
  EXPECT_EQ(again.verdict(), ReplayVerdict::differs);
  EXPECT_EQ(again.arguments, "y=f32[1,1] x=f32[1,1]");
  EXPECT_EQ(again.implementations[0].text, report.implementations[0].text);
}

TEST(Replay, a_correct_call_is_not_minimized) {
  ReplayScene scene;
  const ReplayReport report = scene.replay(scene.recorded(2, 32), {.minimize = true});
  EXPECT_EQ(report.verdict(), ReplayVerdict::agrees);
  EXPECT_TRUE(report.smaller.empty());
}

TEST(Replay, reports_that_values_were_regenerated) {
  ReplayScene scene;
  const ReplayReport report = scene.replay(scene.recorded(2, 20, false));
  EXPECT_TRUE(report.other_values);
  EXPECT_EQ(report.verdict(), ReplayVerdict::differs);
  EXPECT_NE(
      report.to_string().find(
          "note: the file does not have the elements of x: generated values are used instead\n"),
      std::string::npos);
}

TEST(Replay, a_call_that_fails_fails_again) {
  const TemporaryFolder folder;
  Options options = bare();
  options.record = {.folder = folder.at("records"), .inputs = true};
  ReplayScene scene(options);
  scene.kernel("twice/tiles.one").body = [](CallFrame& call) {
    return call.tensor(1).dim(1) > 3 ? call.end(Outcome::failed, "too wide") : Outcome::ok;
  };
  Rows rows(4, 16);
  EXPECT_TRUE(scene.twice(rows.y, rows.x).ok());
  const std::filesystem::directory_iterator file(folder.at("records"));
  const ReplayReport report = scene.replay(file->path().native(), {.minimize = true});
  EXPECT_EQ(report.verdict(), ReplayVerdict::fails);
  EXPECT_EQ(report.says, "too wide");
  EXPECT_EQ(report.smaller_arguments, "y=f32[1,4] x=f32[1,4] by=2");
  EXPECT_NE(report.implementations[0].text.find("twice/tiles.one failed: too wide"),
            std::string::npos)
      << report.implementations[0].text;
}

TEST(Replay, a_refused_implementation_gets_no_verdict) {
  ReplayScene scene;
  const std::string path = scene.recorded(1, 17);
  Policy policy;
  policy.deny = {"twice/tiles.*"};
  ASSERT_TRUE(scene.runtime.policy().set(policy).ok());
  const ReplayReport report = scene.replay(path);
  EXPECT_EQ(report.verdict(), ReplayVerdict::cannot);
  EXPECT_NE(report.implementations[0].text.find("it does not accept the call"), std::string::npos);
}

TEST(Replay, does_not_compare_what_it_cannot_read) {
  ReplayScene scene;
  replay::Recording call = replay::read_file(scene.recorded(1, 17, false)).value();
  for (const char* dtype : {"f64", "1.4x2", "5.64x1"}) {
    for (replay::RecordedArgument& argument : call.arguments) {
      argument.tensor.dtype = parse_dtype(dtype);
    }
    write_file(scene.folder.at("odd"), to_file(call));
    const ReplayReport report = scene.replay(scene.folder.at("odd"));
    EXPECT_EQ(report.verdict(), ReplayVerdict::cannot) << dtype;
    EXPECT_EQ(scene.kernel("twice/tiles.one").runs, 0u);
  }
}

TEST(Replay, refuses_calls_of_other_operators) {
  ReplayScene scene;
  const std::string path = scene.recorded(1, 17);
  Stage other;
  EXPECT_EQ(other.runtime.replay().run(path, {}).error().code(), Code::not_found);
  other.define("twice(out Tensor z[H], Tensor x[H])");
  EXPECT_EQ(other.runtime.replay().run(path, {}).error().reason(), "replay.schema");
  write_file(scene.folder.at("text"), "text");
  EXPECT_EQ(scene.runtime.replay().run(scene.folder.at("text"), {}).error().reason(),
            "replay.file");
}

TEST(Replay, is_written_as_json) {
  ReplayScene scene;
  const ReplayReport report = scene.replay(scene.recorded(1, 17), {.minimize = true});
  const std::string json = to_json(report);
  EXPECT_TRUE(json.starts_with("{\"op\":\"twice\",\"verdict\":\"differs\",\"recorded\":{"));
  EXPECT_NE(
      json.find("\"difference\":{\"argument\":\"y\",\"index\":[0,0],\"got\":0,\"expected\":2,"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find("\"smaller\":{\"arguments\":\"y=f32[1,1] x=f32[1,1]\",\"tried\":"),
            std::string::npos);
  EXPECT_EQ(to_json(scene.runtime.replay().recordings()),
            "{\"folder\":\"\",\"inputs\":false,\"written\":0,\"known\":0,\"left_out\":0,"
            "\"failed\":0,\"problem\":\"\"}");
}

}  // namespace
}  // namespace opmux::test
