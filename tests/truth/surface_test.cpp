#include <algorithm>
#include <chrono>
#include <filesystem>

#include "drafts.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

/// Inputs whose readers no other test would miss; see tools/surface.
namespace opmux::test {
namespace {

using std::chrono::seconds;

TEST(Surface, freeze_at_start_of_false_lets_a_static_runtime_register_first) {
  const TemporaryFolder folder;
  Options options = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
  ASSERT_TRUE(Runtime::create(options)->lockfile().current().write(folder.at("a.lock")).ok());
  options.sources.mode = "static";
  options.sources.lockfile = folder.at("a.lock");
  EXPECT_TRUE(Runtime::create(options)->lockfile().frozen());
  options.sources.freeze_at_start = false;
  Stage stage(options);
  EXPECT_FALSE(stage.runtime.lockfile().frozen());
  (void)stage.define(kCopy);
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  EXPECT_TRUE(stage.runtime.lockfile().frozen());
}

TEST(Surface, stream_is_a_property_of_the_provider) {
  Stage stage;
  (void)stage.define(kCopy);
  const auto run = [](CallFrame&) { return Outcome::ok; };
  const auto implement = [&](const std::string& id, bool stream) {
    return stage.runtime.implement(
        {.id = id, .kind = Kind::default_, .stream = stream, .run = run});
  };
  const auto held = implement("copy/queued.v1", true);
  ASSERT_TRUE(held) << held.error().message();
  const auto other = implement("copy/queued.v2", false);
  ASSERT_FALSE(other);
  EXPECT_THAT(std::string(other.error().message()),
              testing::HasSubstr("its calls return before their work is done"));
}

/// Number of inotify descriptors of this process.
size_t watchers() {
  size_t found = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    found += std::filesystem::read_symlink(file, gone).native() == "anon_inode:inotify" ? 1 : 0;
  }
  return found;
}

TEST(Surface, look_at_files_follows_a_policy_file_without_inotify) {
  const TemporaryFolder folder;
  write_file(folder.at("policy.yaml"), "opmux: 1\n");
  Options options = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
  options.sources.config = folder.at("policy.yaml");
  options.sources.own_thread = false;
  const size_t before = watchers();
  const auto used = [&](bool looks) {
    options.sources.look_at_files = looks;
    Runtime runtime = Runtime::create(options).value();
    runtime.tick(seconds(1));
    return watchers() - before;
  };
  EXPECT_EQ(used(false), 1u);
  EXPECT_EQ(used(true), 0u);
}

TEST(Surface, allow_of_a_rule_leaves_only_what_it_names) {
  Options options = bare();
  options.policy.rules.push_back({.op = "copy", .allow = {"copy/plain.one"}});
  Stage stage(options);
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }), "copy/plain.one");
}

TEST(Surface, allow_is_a_key_of_rules_in_files) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  const auto run = [&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); };
  EXPECT_EQ(ran_by(run), "copy/fast.one");
  const char* const text = "opmux: 1\nrules:\n  - {op: copy, allow: [copy/plain.one]}\n";
  ASSERT_TRUE(stage.runtime.policy().load(text, "policy.yaml").ok());
  EXPECT_EQ(ran_by(run), "copy/plain.one");
}

TEST(Surface, reason_of_a_rule_is_in_the_explanation) {
  Options options = bare();
  options.policy.rules.push_back({.name = "broken",
                                  .op = "copy",
                                  .deny = {"copy/fast.one"},
                                  .reason = "wrong sums on driver 3.1",
                                  .owner = "kernels"});
  Stage stage(options);
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows rows;
  const Explanation why = op.explain(rows.y, rows.x);
  const auto denied = std::ranges::find(why.candidates, "copy/fast.one", &Candidate::id);
  ASSERT_NE(denied, why.candidates.end());
  EXPECT_THAT(denied->reason,
              testing::HasSubstr(R"("broken" (set_policy, kernels; wrong sums on driver 3.1))"));
}

TEST(Surface, open_at_most_limits_how_long_a_breaker_stays_open) {
  const auto next_probe_ms = [](std::optional<int64_t> at_most) {
    Options options = bare();
    options.sources.own_thread = false;
    options.policy.breaker = {
        .consecutive_failures = 1, .open_for_ms = 10'000, .open_at_most_ms = at_most};
    Stage stage(options);
    const Operator op = stage.define(kCopy);
    stage.add({.id = "copy/fast.one", .kind = Kind::default_}).body = [](CallFrame&) {
      return Outcome::failed;
    };
    stage.add({.id = "copy/plain.one", .kind = Kind::reference});
    const Rows rows;
    for (int opened = 0; opened < 4; ++opened) {
      stage.runtime.tick(seconds(1 + 100 * opened));
      EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); }),
                "copy/fast.one copy/plain.one");
    }
    return stage.runtime.health().report().breakers.at(0).next_probe_ms;
  };
  EXPECT_GT(next_probe_ms({}), 20'000u) << "later openings last several times as long";
  EXPECT_LT(next_probe_ms(12'000), 15'000u);
}

/// A device that counts the streams that it has made and not destroyed.
struct StreamDevice {
  int made = 0, destroyed = 0;

  static StreamDevice& of(void* self) { return *static_cast<StreamDevice*>(self); }
  static int32_t create(void* self, opmux_device, void** stream) {
    *stream = &of(self).made;
    ++of(self).made;
    return OPMUX_OK;
  }
  static void destroy(void* self, opmux_device, void* stream) {
    EXPECT_EQ(stream, &of(self).made);
    ++of(self).destroyed;
  }
};

registry::Batch batch_with(StreamDevice& device) {
  opmux_device_table table{};
  table.struct_size = sizeof table;
  table.count = [](void*) -> int32_t { return 1; };
  table.alloc = [](void*, opmux_device, uint64_t, uint64_t, void**) -> int32_t {
    return OPMUX_RESOURCE;
  };
  table.free = [](void*, opmux_device, void*) {};
  table.copy = [](void*, void*, opmux_device, const void*, opmux_device, uint64_t,
                  void*) -> int32_t { return OPMUX_OK; };
  table.synchronize = [](void*, opmux_device, void*) -> int32_t { return OPMUX_OK; };
  table.stream_create = StreamDevice::create;
  table.stream_destroy = StreamDevice::destroy;
  registry::Batch batch = batch_of("queued", {draft("copy", "v1")});
  batch.backend.device_type = batch.implementations[0].caps.device_type = OPMUX_DEVICE_CUDA;
  batch.backend.device = registry::DeviceAccess{&device, table};
  return batch;
}

TEST(Surface, streams_are_made_and_destroyed_by_the_device_table) {
  StreamDevice device;
  Stage stage;
  (void)stage.define(kCopy);
  ASSERT_TRUE(stage.runtime.core().registry().add(batch_with(device), true).refused.empty());
  {
    const DeviceStream stream =
        stage.runtime.plugins().device_access("queued")->create_stream().value();
    EXPECT_EQ(stream.get(), &device.made);
    EXPECT_EQ(device.made, 1);
    EXPECT_EQ(device.destroyed, 0);
  }
  EXPECT_EQ(device.destroyed, 1);
}

}  // namespace
}  // namespace opmux::test
