#include "stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "runtime/core.hpp"

namespace opmux::test {
namespace {

TEST(Runtime, has_the_standard_operators_with_their_reference) {
  const Runtime runtime = Runtime::create(bare()).value();
  const std::vector<OperatorInfo> all = runtime.list();
  std::vector<std::string> names;
  for (const OperatorInfo& op : all) {
    names.push_back(op.name);
    EXPECT_FALSE(op.summary.empty()) << op.name;
    ASSERT_EQ(op.implementations.size(), 1u) << op.name;
    EXPECT_EQ(op.implementations[0].id, op.name + "/reference.scalar");
    EXPECT_EQ(op.implementations[0].kind, "reference");
    EXPECT_TRUE(op.implementations[0].available);
  }
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_THAT(names, testing::IsSupersetOf({"rms_norm", "softmax", "rotary_embedding"}));
  ASSERT_EQ(runtime.plugins().list().size(), 1u);
  EXPECT_EQ(runtime.plugins().list()[0].path, "built in");
  EXPECT_TRUE(runtime.plugins().list()[0].loaded);
}

TEST(Runtime, finds_operators_by_name_and_suggests_the_nearest) {
  const Runtime runtime = Runtime::create(bare()).value();
  EXPECT_EQ(runtime.op("rms_norm")->name(), "rms_norm");
  EXPECT_NE(runtime.op("rms_norm")->schema().find("Tensor x"), std::string::npos);
  const Status unknown = runtime.op("rms_nrom").error();
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_NE(unknown.message().find("rms_norm"), std::string_view::npos);
  const Rows t;
  EXPECT_TRUE(runtime.call("rms_norm", t.y, t.x, t.w).ok());
  EXPECT_EQ(runtime.call("rms_nrom", t.y, t.x, t.w).code(), Code::not_found);
}

TEST(Runtime, defines_an_operator_once) {
  Runtime runtime = Runtime::create(bare()).value();
  EXPECT_TRUE(runtime.define(kCopy).ok());
  EXPECT_TRUE(runtime.define(kCopy).ok());
  EXPECT_EQ(runtime.define("copy(out Tensor y[*], Tensor x[*])").reason(),
            "registry.schema_differs");
  const Rows t;
  EXPECT_EQ(runtime.call("copy", t.y, t.x).code(), Code::no_candidate);
}

TEST(Runtime, refuses_implementations_with_a_reason) {
  Runtime runtime = Runtime::create(bare()).value();
  ASSERT_TRUE(runtime.define(kCopy).ok());
  const auto run = [](CallFrame&) { return Outcome::ok; };
  const auto reason = [&](Implementation what) {
    const auto made = runtime.implement(what);
    return made ? std::string("accepted") : std::string(made.error().reason());
  };
  EXPECT_EQ(reason({.id = "copy", .run = run}), "registry.name");
  EXPECT_EQ(reason({.id = "cpoy/a.b", .kind = Kind::default_, .run = run}),
            "registry.unknown_operator");
  EXPECT_EQ(reason({.id = "copy/a.b", .run = run}), "registry.vendor");
  EXPECT_EQ(reason({.id = "copy/a.b", .kind = Kind::default_}), "registry.no_run");
  const KernelFunctions lacks_run{
      .workspace = [](void*, const opmux_call*) { return uint64_t{64}; }};
  EXPECT_EQ(reason({.id = "copy/a.b", .kind = Kind::default_, .run = run, .kernel = lacks_run}),
            "registry.no_run");
  EXPECT_EQ(reason({.id = "copy/a.b", .kind = Kind::default_, .run = run}), "accepted");
  const Registration held =
      runtime.implement({.id = "copy/a.b", .kind = Kind::default_, .run = run}).value();
  EXPECT_EQ(reason({.id = "copy/a.b", .kind = Kind::default_, .run = run}), "registry.duplicate");
}

TEST(Runtime, a_policy_that_is_refused_changes_nothing) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(stage.runtime.policy().set({.prefer = {"reference"}}).ok());
  const uint64_t generation = stage.runtime.generation();
  EXPECT_EQ(stage.runtime.policy().set({.prefer = {"fastest"}}).reason(), "policy.token");
  const Status nothing = stage.runtime.policy().set({.require = {"vendor:zeta"}});
  EXPECT_EQ(nothing.reason(), "policy.no_candidates");
  EXPECT_EQ(stage.runtime.generation(), generation);
  EXPECT_EQ(stage.runtime.policy().get().prefer, std::vector<std::string>{"reference"});
  const Rows t;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }), "copy/plain.one");
  ASSERT_TRUE(stage.runtime.policy()
                  .set({.rules = {{.op = "copy", .require = {"vendor:zeta"}, .allow_none = true}}})
                  .ok());
  EXPECT_EQ(op(t.y, t.x).code(), Code::no_candidate);
  ASSERT_TRUE(stage.runtime.policy().reset().ok());
  EXPECT_TRUE(stage.runtime.policy().get().empty());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }), "copy/fast.one");
}

TEST(Runtime, a_condition_that_no_operator_can_answer_is_refused) {
  Stage stage;
  stage.define(kCopy);
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const auto rule = [](std::string op, std::string dim) {
    return Policy{.rules = {{.op = std::move(op),
                             .when = Condition::dim(std::move(dim), Compare::greater, 4),
                             .prefer = {"vendor"}}}};
  };
  for (const char* op : {"copy", "cop*", "*"}) {
    const Status refused = stage.runtime.policy().set(rule(op, "NOWHERE"));
    EXPECT_EQ(refused.reason(), "policy.when") << op;
    EXPECT_EQ(Scope::make(stage.runtime, rule(op, "NOWHERE")).error().reason(), "policy.when");
    const PolicyScope scope(stage.runtime, rule(op, "NOWHERE"));
    EXPECT_EQ(scope.status().reason(), "policy.when");
  }
  EXPECT_TRUE(stage.runtime.policy().set(rule("*", "H")).ok());
  const Status unknown = stage.runtime.policy().set(rule("defined_later", "NOWHERE"));
  EXPECT_EQ(unknown.reason(), "policy.op");
}

TEST(Runtime, takes_a_policy_and_a_sink_from_its_options) {
  Options options = bare();
  options.policy = {.prefer = {"reference"}};
  size_t events = 0;
  options.sink = [&](const Event&) { ++events; };
  Stage stage(std::move(options));
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows t;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }), "copy/plain.one");
  EXPECT_GT(events, 0u);
  Options wrong = bare();
  wrong.policy = {.prefer = {"fastest"}};
  EXPECT_EQ(Runtime::create(std::move(wrong)).error().reason(), "policy.token");
}

TEST(Runtime, refuses_an_environment_that_it_does_not_understand) {
  const auto reason = [](const char* name, const char* value) {
    const auto made = Runtime::create(bare({{name, value}}));
    return made ? std::string("made") : std::string(made.error().reason());
  };
  EXPECT_EQ(reason("OPMUX_PREFFER", "vendor"), "environment.unknown");
  EXPECT_EQ(reason("OPMUX_PREFER", "fastest"), "environment.value");
  EXPECT_EQ(reason("OPMUX_BACKEND_REFERENC", "1"), "environment.backend");
  EXPECT_EQ(reason("OPMUX_BACKEND_REFERENCE", "1"), "made");
  EXPECT_EQ(reason("OTHER", "x"), "made");
}

TEST(Runtime, reads_the_variables_of_the_process_by_default) {
  ASSERT_EQ(setenv("OPMUX_NONSENSE", "1", 1), 0);
  const auto made = Runtime::create({.backends = false});
  unsetenv("OPMUX_NONSENSE");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().reason(), "environment.unknown");
}

TEST(Runtime, logs_the_variables_of_a_kubernetes_service_that_it_ignores) {
  std::vector<std::string> texts;
  Options options = bare({{"OPMUX_SERVICE_HOST", "10.0.0.11"}, {"OPMUX_SERVICE_PORT", "80"}});
  options.sink = [&](const Event& event) {
    if (event.code == "environment.service") texts.push_back(event.text);
  };
  ASSERT_TRUE(Runtime::create(options));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(texts[0].ends_with(": OPMUX_SERVICE_HOST, OPMUX_SERVICE_PORT")) << texts[0];
}

TEST(Runtime, writes_events_to_standard_error_when_asked_by_the_environment) {
  testing::internal::CaptureStderr();
  {
    Stage stage(bare({{"OPMUX_LOG", "info"}}));
    const Operator op = stage.define(kCopy);
    stage.add({.id = "copy/fast.one", .kind = Kind::default_});
    const Rows t;
    EXPECT_TRUE(op(t.y, t.x).ok());
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("opmux info dispatch.chosen copy/fast.one"), std::string::npos) << text;
}

TEST(Runtime, passes_events_to_the_sink_also_if_the_environment_asks_for_them) {
  std::vector<std::string> codes;
  Options options = bare({{"OPMUX_LOG", "info"}});
  options.sink = [&](const Event& event) { codes.push_back(event.code); };
  testing::internal::CaptureStderr();
  {
    Stage stage(options);
    const Operator op = stage.define(kCopy);
    stage.add({.id = "copy/fast.one", .kind = Kind::default_});
    const Rows t;
    EXPECT_TRUE(op(t.y, t.x).ok());
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("opmux info dispatch.chosen copy/fast.one"), std::string::npos) << text;
  EXPECT_NE(std::ranges::find(codes, "dispatch.chosen"), codes.end());
}

TEST(Runtime, shows_settings_with_their_origin) {
  Stage stage(bare({{"OPMUX_STRICT", "1"}, {"OPMUX_LOG", "error"}}));
  ASSERT_TRUE(stage.runtime.policy().set({.prefer = {"vendor"}}).ok());
  const auto origin = [&](const std::string& key) {
    for (const SettingInfo& setting : stage.runtime.settings()) {
      if (setting.key == key) return setting.value + " by " + setting.origin;
    }
    return std::string();
  };
  EXPECT_NE(origin("strict").find("OPMUX_STRICT"), std::string::npos) << origin("strict");
  EXPECT_NE(origin("prefer").find("set_policy"), std::string::npos) << origin("prefer");
  EXPECT_EQ(origin("log"), "error by OPMUX_LOG (environment)");
}

TEST(Runtime, switches_backends_apart_from_their_availability) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows t;
  const auto who = [&] { return ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }); };
  EXPECT_EQ(who(), "copy/fast.one");
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("fast", false).ok());
  EXPECT_EQ(who(), "copy/plain.one");
  EXPECT_EQ(candidate(op.explain(t.y, t.x), "copy/fast.one").code, "backend.disabled");
  for (const OperatorInfo& each : stage.runtime.list()) {
    if (each.name != "copy") continue;
    EXPECT_FALSE(each.implementations[0].available);
    EXPECT_EQ(each.implementations[0].reason, "backend fast is switched off");
    EXPECT_EQ(each.implementations[0].calls, 1u);
  }
  ASSERT_TRUE(stage.runtime.plugins().enable_backend("fast", true).ok());
  EXPECT_EQ(who(), "copy/fast.one");
  const Status unknown = stage.runtime.plugins().enable_backend("fest", true);
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_NE(unknown.message().find("fast"), std::string_view::npos);
}

TEST(Runtime, a_probe_that_refuses_or_throws_leaves_the_others) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  const auto add_backend = [&](const std::string& name, auto probe) {
    registry::Batch batch;
    batch.backend.name = name;
    batch.backend.kind = Kind::default_;
    batch.backend.probe = probe;
    registry::ImplementationDraft draft;
    draft.op = "copy";
    draft.variant = "one";
    draft.kernel.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; };
    batch.implementations.push_back(std::move(draft));
    ASSERT_TRUE(stage.runtime.core().registry().add(batch, true).refused.empty());
  };
  add_backend("absent", [] { return std::optional<std::string>("no driver"); });
  add_backend("broken", []() -> std::optional<std::string> { throw std::runtime_error("oh"); });
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  const Rows t;
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x).ok()); }), "copy/plain.one");
  const Explanation why = op.explain(t.y, t.x);
  EXPECT_EQ(candidate(why, "copy/absent.one").code, "backend.unavailable");
  EXPECT_EQ(candidate(why, "copy/absent.one").reason, "no driver");
  EXPECT_NE(candidate(why, "copy/broken.one").reason.find("oh"), std::string::npos);
  for (const OperatorInfo& each : stage.runtime.list()) {
    if (each.name == "copy") {
      EXPECT_EQ(each.implementations[0].reason, "no driver");
    }
  }
}

TEST(Runtime, a_missing_folder_is_logged_and_does_not_prevent_the_start) {
  Options options = bare({{"OPMUX_PLUGIN_PATH", "/nonexistent/plugins"}});
  std::vector<std::string> codes;
  options.sink = [&](const Event& event) { codes.push_back(event.code); };
  options.backends = true;
  const auto made = Runtime::create(std::move(options));
  ASSERT_TRUE(made.has_value());
  EXPECT_THAT(codes, testing::Contains("plugin.folder"));
}

TEST(Runtime, moves_with_everything_it_has) {
  Runtime first = Runtime::create(bare()).value();
  ASSERT_TRUE(first.define(kCopy).ok());
  const Operator op = first.op("copy").value();
  Registration held = first
                          .implement({.id = "copy/a.b",
                                      .kind = Kind::default_,
                                      .run = [](CallFrame&) { return Outcome::ok; }})
                          .value();
  PolicyControl policy = first.policy();
  const Runtime second = std::move(first);
  held.keep();
  const Rows t;
  EXPECT_TRUE(op(t.y, t.x).ok());
  EXPECT_TRUE(second.call("copy", t.y, t.x).ok());
  ASSERT_TRUE(
      policy.set({.rules = {{.op = "copy", .deny = {"copy/a.b"}, .allow_none = true}}}).ok());
  EXPECT_EQ(second.policy().get().rules.size(), 1u);
  EXPECT_EQ(op(t.y, t.x).code(), Code::no_candidate);
}

TEST(DefaultRuntime, is_the_same_until_it_is_reset) {
  Runtime& first = default_runtime();
  EXPECT_EQ(&first, &default_runtime());
  ASSERT_TRUE(first.define(kCopy).ok());
  EXPECT_TRUE(first.op("copy").has_value());
  reset_default_runtime();
  EXPECT_FALSE(default_runtime().op("copy").has_value());
  EXPECT_TRUE(default_runtime().op("rms_norm").has_value());
  reset_default_runtime();
}

}  // namespace
}  // namespace opmux::test
