#include <cstring>
#include <filesystem>
#include <set>

#include "replay/dump_filter.hpp"
#include "replay/recording.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using replay::Contents;
using replay::DumpFilter;

/// A runtime that dumps, with an operator that doubles.
struct DumpStage : Stage {
  explicit DumpStage(const TemporaryFolder& folder, const std::string& dump, bool inputs = true,
                     uint32_t max_files = 64)
      : Stage([&] {
          Options options = bare({{"OPMUX_DUMP", dump}});
          options.record.folder = folder.at("dump");
          options.record.inputs = inputs;
          options.record.max_files = max_files;
          return options;
        }()),
        path(folder.at("dump")) {
    copy = define(kCopy);
    add({.id = "copy/acme.twice",
         .kind = Kind::default_,
         .caps = Caps{}.dtypes({f32}),
         .run = [](CallFrame& call) {
           for (int i = 0; i < 4; ++i) call.data<float>(0)[i] = 2 * call.data<const float>(1)[i];
           return Outcome::ok;
         }});
  }
  Status run(const char* layer) {
    const Tag tag = layer == nullptr ? Tag{} : runtime.tag(layer);
    return copy.with(CallOptions{.tag = tag})(TensorView(y, f32, {1, 4}),
                                              TensorView(x, f32, {1, 4}));
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
      const std::string name = entry.path().filename();
      names.insert(name.substr(0, name.rfind(".p")));
    }
    return names;
  }
  std::string file(const std::string& name) const {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().filename().string().starts_with(name + ".p")) return entry.path();
    }
    return {};
  }

  std::string path;
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  Operator copy = runtime.op("rms_norm").value();
};

TEST(Truth, dump_writes_the_calls_of_an_operator_a_layer_and_steps) {
  const TemporaryFolder folder;
  DumpStage stage(folder, "cop*:layer.*:1-2");
  for (int step = 0; step < 4; ++step) {
    for (const char* layer : {"layer.3", "layer.7", "head"}) ASSERT_TRUE(stage.run(layer).ok());
    ASSERT_TRUE(stage.run(nullptr).ok());
  }
  EXPECT_EQ(stage.files(), (std::set<std::string>{"copy.layer.3.1", "copy.layer.3.2",
                                                  "copy.layer.7.1", "copy.layer.7.2"}));
  EXPECT_EQ(stage.runtime.replay().recordings().written, 4u);
}

TEST(Truth, a_dumped_call_has_inputs_and_results_and_is_replayed) {
  const TemporaryFolder folder;
  DumpStage stage(folder, "copy");
  ASSERT_TRUE(stage.run("layer.3").ok());
  const std::string file = stage.file("copy.layer.3.0");
  const auto recording = replay::read_file(file);
  ASSERT_TRUE(recording) << recording.error().to_string();
  EXPECT_EQ(recording->cause, replay::Cause::dumped);
  EXPECT_EQ(recording->implementation, "copy/acme.twice");
  EXPECT_EQ(recording->call_class, "layer layer.3 step 0");
  const replay::RecordedTensor& x = recording->find("x")->tensor;
  const replay::RecordedTensor& y = recording->find("y")->tensor;
  EXPECT_EQ(x.contents, Contents::known);
  EXPECT_EQ(y.contents, Contents::result);
  ASSERT_EQ(y.bytes.size(), sizeof stage.y);
  EXPECT_EQ(std::memcmp(y.bytes.data(), stage.y, sizeof stage.y), 0);
  EXPECT_EQ(stage.y[3], 8);

  // The reference copies, so the replay finds that the recorded implementation differs: the results
  // in the file are not taken for those of the new run.
  stage.add({.id = "copy/plain.one", .kind = Kind::reference, .run = [](CallFrame& call) {
               std::memcpy(call.data<float>(0), call.data<const float>(1), 4 * sizeof(float));
               return Outcome::ok;
             }});
  const auto report = stage.runtime.replay().run(file);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->cause, "dumped");
  EXPECT_FALSE(report->other_values);
  EXPECT_EQ(report->verdict(), ReplayVerdict::differs) << report->to_string();
}

TEST(Truth, a_dump_without_inputs_has_digests_alone) {
  const TemporaryFolder folder;
  DumpStage stage(folder, "copy", false);
  ASSERT_TRUE(stage.run("a").ok());
  const auto recording = replay::read_file(stage.file("copy.a.0"));
  ASSERT_TRUE(recording) << recording.error().to_string();
  for (const char* name : {"x", "y"}) {
    EXPECT_EQ(recording->find(name)->tensor.sha256.size(), 64u) << name;
    EXPECT_TRUE(recording->find(name)->tensor.bytes.empty()) << name;
  }
}

TEST(Truth, a_dump_ends_when_its_folder_is_full) {
  const TemporaryFolder folder;
  DumpStage stage(folder, "copy", true, 3);
  for (int step = 0; step < 9; ++step) ASSERT_TRUE(stage.run("a").ok());
  EXPECT_EQ(stage.files().size(), 3u);
  const RecordState state = stage.runtime.replay().recordings();
  EXPECT_EQ(state.written, 3u);
  EXPECT_EQ(state.left_out, 1u) << "further calls are neither copied nor counted";
}

TEST(Truth, a_call_that_failed_is_no_step_of_a_dump) {
  const TemporaryFolder folder;
  DumpStage stage(folder, "copy::0");
  bool fails = true;
  stage.add({.id = "copy/zeta.first",
             .kind = Kind::default_,
             .priority = 900,
             .run = [&](CallFrame& call) {
               return fails ? call.end(Outcome::declined, "not now") : Outcome::ok;
             }});
  ASSERT_TRUE(stage.run("a").ok());
  const auto recording = replay::read_file(stage.file("copy.a.0"));
  ASSERT_TRUE(recording) << recording.error().to_string();
  EXPECT_EQ(recording->implementation, "copy/acme.twice");
}

TEST(Truth, a_dump_of_another_form_or_without_a_folder_is_refused) {
  const auto reason = [](Variables variables) {
    const auto runtime = Runtime::create(bare(std::move(variables)));
    return runtime ? "" : std::string(runtime.error().reason());
  };
  EXPECT_EQ(reason({{"OPMUX_DUMP", "rms_norm"}}), "record.dump");
  for (const char* wrong :
       {"a:b:c:d", "rms norm", "rms_norm::x", "rms_norm::7-3", "rms_norm::1-"}) {
    EXPECT_EQ(reason({{"OPMUX_DUMP", wrong}, {"OPMUX_RECORD", "/nowhere"}}), "record.dump")
        << wrong;
  }
  EXPECT_EQ(reason({{"OPMUX_DUMP", "rms_norm:layer.3:5-15"}, {"OPMUX_RECORD", "/nowhere"}}), "");
}

TEST(Truth, the_parts_of_a_dump_filter) {
  const DumpFilter filter = DumpFilter::parse("rms_norm,attention:layer.1*,head:5").value();
  EXPECT_TRUE(filter.fits_operator("attention") && !filter.fits_operator("softmax"));
  EXPECT_TRUE(filter.fits_layer("layer.12") && filter.fits_layer("head"));
  EXPECT_FALSE(filter.fits_layer("layer.2") || filter.fits_layer(""));
  EXPECT_TRUE(filter.fits_step(5) && !filter.fits_step(4) && !filter.fits_step(6));
  const DumpFilter all = DumpFilter::parse("::").value();
  EXPECT_TRUE(all.fits_operator("any") && all.fits_layer("") && all.fits_step(1u << 20));
}

}  // namespace
}  // namespace opmux::test
