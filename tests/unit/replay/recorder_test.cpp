#include "stage.hpp"

#include <chrono>
#include <filesystem>

#include "replay/recording.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

/// A recording runtime with an implementation that fails for H = 8 and a reference that does not.
struct RecordedStage : Stage {
  explicit RecordedStage(Options options) : Stage(std::move(options)) {
    copy = define(kCopy);
    add({.id = "copy/fast.one", .kind = Kind::default_, .run = fails});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  static Outcome fails(CallFrame& call) {
    return call.tensor(1).dim(1) == 8 ? call.end(Outcome::failed, "out of luck") : Outcome::ok;
  }
  void run(const Rows& of) { EXPECT_TRUE(copy(of.y, of.x).ok()); }

  Operator copy = runtime.op("rms_norm").value();
  Rows rows;
};

Options recording_to(const std::string& folder, bool inputs = false) {
  Options options = bare();
  options.record.folder = folder;
  options.record.inputs = inputs;
  return options;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    paths.push_back(entry.path());
  }
  return paths;
}

TEST(CallRecorder, writes_a_call_that_failed_once) {
  const TemporaryFolder folder;
  RecordedStage stage(recording_to(folder.at("records")));
  stage.rows.in[3] = 3;
  stage.run(stage.rows);
  stage.run(stage.rows);
  const auto files = files_in(folder.at("records"));
  ASSERT_EQ(files.size(), 1u);
  const auto recording = replay::read_file(files[0]);
  ASSERT_TRUE(recording) << recording.error().to_string();
  EXPECT_EQ(recording->implementation, "copy/fast.one");
  EXPECT_EQ(recording->schema, "copy(out Tensor y[..., H], Tensor x[..., H])");
  EXPECT_EQ(recording->cause, replay::Cause::failed);
  EXPECT_EQ(recording->reason, "call.failed");
  EXPECT_EQ(recording->says, "out of luck");
  EXPECT_EQ(recording->call_class, "f32 H<=8 rows<=2 on cpu:0");
  EXPECT_EQ(recording->policy_hash.size(), 16u);
  EXPECT_EQ(recording->arguments_text(), "y=f32[2,8] x=f32[2,8]");
  EXPECT_FALSE(recording->complete());
  const RecordState state = stage.runtime.replay().recordings();
  EXPECT_EQ(state.folder, folder.at("records"));
  EXPECT_EQ(state.written, 1u);
  EXPECT_EQ(state.known, 1u);
}

TEST(CallRecorder, no_element_is_written_unless_asked_for) {
  const TemporaryFolder folder;
  RecordedStage redacted(recording_to(folder.at("a"))), whole(recording_to(folder.at("b"), true));
  for (RecordedStage* stage : {&redacted, &whole}) {
    stage->rows.in[3] = 1234.5F;
    stage->run(stage->rows);
  }
  const auto without = replay::read_file(files_in(folder.at("a")).at(0));
  const auto with = replay::read_file(files_in(folder.at("b")).at(0));
  ASSERT_TRUE(without && with);
  EXPECT_TRUE(without->arguments[1].tensor.bytes.empty());
  ASSERT_EQ(with->arguments[1].tensor.bytes.size(), 64u);
  EXPECT_EQ(reinterpret_cast<const float*>(with->arguments[1].tensor.bytes.data())[3], 1234.5F);
  EXPECT_EQ(with->arguments[1].tensor.sha256, without->arguments[1].tensor.sha256);
  EXPECT_TRUE(with->complete());
}

TEST(CallRecorder, elements_beyond_the_limit_are_not_written) {
  const TemporaryFolder folder;
  for (const uint64_t limit : {64, 63}) {
    Options options = recording_to(folder.at("records" + std::to_string(limit)), true);
    options.record.max_bytes = limit;
    RecordedStage stage(options);
    stage.run(stage.rows);
    const auto recording = replay::read_file(files_in(options.record.folder).at(0));
    ASSERT_TRUE(recording);
    EXPECT_EQ(recording->arguments[1].tensor.bytes.size(), limit == 64 ? 64u : 0u);
  }
}

TEST(CallRecorder, a_bound_plan_records_the_arguments_of_the_call) {
  const TemporaryFolder folder;
  RecordedStage stage(recording_to(folder.at("records"), true));
  stage.kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::ok; };
  Plan plan = stage.copy.bind(stage.rows.y, stage.rows.x).value();
  stage.kernel("copy/fast.one").body = RecordedStage::fails;
  Rows others;
  others.in[0] = 5;
  EXPECT_EQ(plan(others.y, others.x).code(), Code::failed);
  const auto recording = replay::read_file(files_in(folder.at("records")).at(0));
  ASSERT_TRUE(recording);
  EXPECT_EQ(reinterpret_cast<const float*>(recording->arguments[1].tensor.bytes.data())[0], 5.0F);
}

TEST(CallRecorder, each_class_has_a_separate_file_up_to_the_limit) {
  const TemporaryFolder folder;
  Options options = recording_to(folder.at("records"));
  options.record.max_files = 2;
  RecordedStage stage(std::move(options));
  for (const int64_t rows : {2, 4, 8}) stage.run(Rows(rows, 8));
  EXPECT_EQ(files_in(folder.at("records")).size(), 2u);
  const RecordState state = stage.runtime.replay().recordings();
  EXPECT_EQ(state.written, 2u);
  EXPECT_EQ(state.left_out, 1u);
  EXPECT_NE(state.problem.find("which is the limit"), std::string::npos);
}

TEST(CallRecorder, a_recording_of_another_process_is_not_written_again) {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    RecordedStage stage(recording_to(folder.at("records")));
    stage.run(stage.rows);
    EXPECT_EQ(stage.runtime.replay().recordings().written, i == 0 ? 1u : 0u);
  }
  EXPECT_EQ(files_in(folder.at("records")).size(), 1u);
}

TEST(CallRecorder, an_unwritable_folder_is_logged_once_and_does_no_harm) {
  const TemporaryFolder folder;
  write_file(folder.at("file"), "");
  Options options = recording_to(folder.at("file/records"));
  std::vector<std::string> told;
  options.sink = [&](const Event& event) {
    if (event.code.starts_with("record.")) told.push_back(std::string(event.code));
  };
  RecordedStage stage(std::move(options));
  for (const int64_t rows : {2, 4, 8}) stage.run(Rows(rows, 8));
  EXPECT_EQ(told, std::vector<std::string>{"record.folder"});
  EXPECT_EQ(stage.runtime.replay().recordings().failed, 3u);
  EXPECT_EQ(stage.stats("copy/plain.one").calls, 3u);
}

TEST(CallRecorder, a_wrong_result_is_recorded_with_its_inputs) {
  const TemporaryFolder folder;
  Options options = recording_to(folder.at("records"), true);
  options.sources.own_thread = false;
  options.policy.shadow.every = 1;
  Stage stage(std::move(options));
  const Operator add_one = stage.define("add_one(inout Tensor x[N])");
  const auto adding = [](float by) {
    return [by](CallFrame& call) {
      for (int64_t i = 0; i < call.tensor(0).dim(0); ++i) call.data<float>(0)[i] += by;
      return Outcome::ok;
    };
  };
  stage.add({.id = "add_one/fast.one", .kind = Kind::default_, .run = adding(2)});
  stage.add({.id = "add_one/plain.one", .kind = Kind::reference, .run = adding(1)});
  std::vector<float> values{1, 2, 3, 4};
  EXPECT_TRUE(add_one(TensorView(values.data(), f32, {4})).ok());
  EXPECT_EQ(values[3], 6) << "the caller's result is never altered";
  stage.runtime.tick(std::chrono::seconds(1));
  const auto files = files_in(folder.at("records"));
  ASSERT_EQ(files.size(), 1u);
  const auto recording = replay::read_file(files[0]);
  ASSERT_TRUE(recording) << recording.error().to_string();
  EXPECT_EQ(recording->cause, replay::Cause::diverged);
  EXPECT_EQ(recording->reason, "shadow.mismatch");
  ASSERT_TRUE(recording->element);
  EXPECT_EQ(recording->element->index, std::vector<int64_t>{0});
  EXPECT_EQ(recording->element->got, 3);
  EXPECT_EQ(recording->element->expected, 2);
  const replay::RecordedTensor& x = recording->arguments.at(0).tensor;
  ASSERT_EQ(x.bytes.size(), 16u);
  EXPECT_EQ(reinterpret_cast<const float*>(x.bytes.data())[3], 4) << "the value before the call";
}

TEST(CallRecorder, the_environment_names_folder_and_inputs) {
  const TemporaryFolder folder;
  Options options = bare({{"OPMUX_RECORD", "inputs:" + folder.at("records") + "/"}});
  RecordedStage stage(options);
  stage.run(stage.rows);
  EXPECT_TRUE(stage.runtime.replay().recordings().inputs);
  EXPECT_EQ(stage.runtime.replay().recordings().folder, folder.at("records"));
  EXPECT_EQ(files_in(folder.at("records")).size(), 1u);
  EXPECT_EQ(setting(stage.runtime, "record"),
            "inputs:" + folder.at("records") + "/ <- OPMUX_RECORD (environment)");
  options.record.folder = folder.at("others");
  RecordedStage other(options);
  EXPECT_EQ(other.runtime.replay().recordings().folder, folder.at("others"));
  EXPECT_FALSE(other.runtime.replay().recordings().inputs);
  EXPECT_EQ(RecordedStage(bare()).runtime.replay().recordings().folder, "");
}

}  // namespace
}  // namespace opmux::test
