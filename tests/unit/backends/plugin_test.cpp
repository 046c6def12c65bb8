#include <cstddef>
#include <opmux/plugin.hpp>
#include <stdexcept>
#include <thread>

#include "abi_call.hpp"

extern "C" int32_t opmux_plugin_query_v1_acme(const opmux_host* host, opmux_plugin* out);
extern "C" int32_t opmux_plugin_query_v1_tiny(const opmux_host* host, opmux_plugin* out);

namespace opmux::testing {
namespace {

namespace op = opmux::plugin;

// Seals one implementation and keeps it alive.
struct Sealed {
  explicit Sealed(const op::Impl& impl)
      : plugin(op::Plugin{"p", "1"}.add(op::Backend{"b", OPMUX_KIND_DEFAULT}.add(impl))) {
    plugin.seal();
    c.struct_size = sizeof c;
    plugin.write(&c);
  }
  const opmux_impl& impl() const { return c.backends[0].impls[0]; }
  op::Plugin plugin;
  opmux_plugin c{};
};

template <class Fn>
CallResult run(Fn fn, const std::vector<opmux_arg>& args = {}, const CallOptions& options = {}) {
  const Sealed sealed(op::Impl{"f", "v"}.run(fn));
  return call(sealed.impl(), args, options);
}

TEST(PluginRun, returning_nothing_is_success) {
  EXPECT_EQ(run([](const op::Call&) {}).outcome, OPMUX_OK);
}

TEST(PluginRun, exception_becomes_failed_with_its_text) {
  const auto r = run([](const op::Call&) { throw std::runtime_error("no tiles left"); });
  EXPECT_EQ(r.outcome, OPMUX_FAILED);
  EXPECT_EQ(r.code, "plugin.exception");
  EXPECT_EQ(r.text, "no tiles left");
}

TEST(PluginRun, a_thrown_non_exception_becomes_failed) {
  EXPECT_EQ(run([](const op::Call&) { throw 7; }).outcome, OPMUX_FAILED);
}

TEST(PluginRun, bad_alloc_becomes_resource) {
  EXPECT_EQ(run([](const op::Call&) { throw std::bad_alloc(); }).outcome, OPMUX_RESOURCE);
}

TEST(PluginRun, decline_carries_code_and_text) {
  const auto r = run([](const op::Call& c) { return op::decline(c.error(), "f.odd", "N is odd"); });
  EXPECT_EQ(r.outcome, OPMUX_DECLINED);
  EXPECT_EQ(r.code, "f.odd");
  EXPECT_EQ(r.text, "N is odd");
}

TEST(PluginRun, a_call_without_error_sink_is_fine) {
  const Sealed sealed(op::Impl{"f", "v"}.run([](const op::Call&) { throw 7; }));
  opmux_call c{};
  c.struct_size = sizeof c;
  EXPECT_EQ(sealed.impl().run(sealed.impl().user_data, &c), OPMUX_FAILED);
}

TEST(PluginReport, truncates_the_text_to_the_available_space) {
  Sink sink(4);
  op::fail(&sink.c, "code", "a long text");
  EXPECT_EQ(sink.message(), "a lo");
  EXPECT_EQ(sink.text[4], '\0');
}

TEST(PluginCall, reads_every_kind_of_argument) {
  Tensor x(kF32, {2, 3}, {5, 1}, 2);
  x.set(0, 42);
  opmux_arg boolean = enum_arg(1);
  boolean.tag = OPMUX_ARG_BOOL;
  const auto r = run(
      [](const op::Call& c) {
        const op::TensorArg t = c.tensor(0);
        const bool right = t.present() && t.is(op::f32) && *t.data<float>() == 42 &&
                           t.rank() == 2 && t.dim(-1) == 3 && t.stride(0) == 5 &&
                           t.elements() == 6 && !c.optional_tensor(1).present() &&
                           c.f64(2) == 0.5 && c.i64(3) == 4 && c.boolean(4) && c.f64(1, 8) == 8 &&
                           !c.present(99);
        return right ? OPMUX_OK : OPMUX_FAILED;
      },
      {arg(x), absent(), arg(0.5), enum_arg(4), boolean});
  EXPECT_EQ(r.outcome, OPMUX_OK);
}

TEST(PluginCall, a_required_tensor_that_is_missing_fails_the_call) {
  const auto r = run([](const op::Call& c) { c.tensor(0); }, {absent()});
  EXPECT_EQ(r.outcome, OPMUX_FAILED);
  EXPECT_EQ(r.text, "a required tensor is missing");
}

TEST(PluginCall, follows_the_hosts_argument_stride) {
  struct Wide {
    opmux_arg arg;
    uint64_t later_field;
  } wide[] = {{arg(1.0), 0}, {arg(2.0), 0}};
  opmux_call c{};
  c.args = &wide[0].arg;
  c.arg_count = 2;
  c.arg_stride = sizeof(Wide);
  EXPECT_EQ(op::Call{c}.f64(1), 2.0);
}

// A pool of two threads that counts its calls.
void two_threads(void* pool, int64_t count, void* context, void (*body)(void*, int64_t)) {
  ++*static_cast<int*>(pool);
  std::thread other([&] {
    for (int64_t i = 1; i < count; i += 2) body(context, i);
  });
  for (int64_t i = 0; i < count; i += 2) body(context, i);
  other.join();
}

TEST(PluginCall, for_each_uses_the_pool_only_if_more_than_one_thread_is_lent) {
  for (int32_t threads : {1, 2}) {
    int asked = 0;
    std::vector<int> seen(9);
    run([&](const op::Call& c) { c.for_each(9, [&](int64_t i) { ++seen[size_t(i)]; }); }, {},
        {threads, two_threads, &asked});
    EXPECT_EQ(seen, std::vector<int>(9, 1));
    EXPECT_EQ(asked, threads - 1);
  }
}

TEST(PluginCall, exception_on_a_pool_thread_becomes_the_outcome) {
  int asked = 0;
  const auto r = run(
      [](const op::Call& c) {
        c.for_each(4, [](int64_t i) {
          if (i == 1) throw std::runtime_error("on the other thread");
        });
      },
      {}, {2, two_threads, &asked});
  EXPECT_EQ(r.outcome, OPMUX_FAILED);
  EXPECT_EQ(r.text, "on the other thread");
}

TEST(PluginPlan, prepared_state_reaches_run_and_dies_with_plan_free) {
  std::weak_ptr<int> watch;
  int seen = 0;
  const Sealed sealed(op::Impl{"f", "v"}
                          .plan([&](const op::Call&) {
                            auto made = std::make_shared<int>(5);
                            watch = made;
                            return made;
                          })
                          .run([&](const op::Call& c) { seen = *c.prepared<int>(); }));
  EXPECT_EQ(call(sealed.impl(), {}).outcome, OPMUX_OK);
  EXPECT_EQ(seen, 5);
  EXPECT_TRUE(watch.expired());
}

TEST(PluginPlan, exception_becomes_the_outcome) {
  const Sealed sealed(op::Impl{"f", "v"}
                          .plan([](const op::Call&) -> std::shared_ptr<void> {
                            throw std::runtime_error("no tactic");
                          })
                          .run([](const op::Call&) {}));
  const auto r = call(sealed.impl(), {});
  EXPECT_EQ(r.outcome, OPMUX_FAILED);
  EXPECT_EQ(r.text, "no tactic");
}

TEST(PluginWorkspace, one_that_throws_requests_the_maximum_size) {
  const Sealed sealed(op::Impl{"f", "v"}
                          .workspace([](const op::Call&) -> uint64_t { throw 1; })
                          .run([](const op::Call&) {}));
  opmux_call c{};
  EXPECT_EQ(sealed.impl().workspace(sealed.impl().user_data, &c), UINT64_MAX);
}

TEST(PluginInstance, is_created_loaded_used_and_destroyed) {
  std::weak_ptr<double> watch;
  double seen = 0;
  const Sealed sealed(op::Impl{"f", "v"}
                          .stateful(
                              [&](op::Impl::Args) {
                                auto made = std::make_shared<double>(0);
                                watch = made;
                                return made;
                              },
                              [](void* state, op::Impl::Args params) {
                                *static_cast<double*>(state) = params[0].value.f64;
                                return OPMUX_OK;
                              })
                          .run([&](const op::Call& c) { seen = *c.instance<double>(); }));
  const opmux_impl& impl = sealed.impl();
  opmux_call c{};
  const opmux_arg param = arg(2.5);
  ASSERT_EQ(impl.create(impl.user_data, nullptr, 0, &c.instance, nullptr), OPMUX_OK);
  ASSERT_EQ(impl.load(impl.user_data, c.instance, &param, 1, nullptr), OPMUX_OK);
  ASSERT_EQ(impl.run(impl.user_data, &c), OPMUX_OK);
  EXPECT_EQ(seen, 2.5);
  impl.destroy(impl.user_data, c.instance);
  EXPECT_TRUE(watch.expired());
}

TEST(PluginVerify, sees_facts_and_refuses_with_a_reason) {
  const Sealed sealed(op::Impl{"f", "v"}
                          .verify(
                              [](const op::Facts& facts, opmux_error* why) {
                                return facts.dim("H") == 8 ? OPMUX_OK
                                                           : op::decline(why, "f.h", "H is not 8");
                              },
                              {{OPMUX_FACT_DIM, "H"}})
                          .run([](const op::Call&) {}));
  const opmux_impl& impl = sealed.impl();
  ASSERT_EQ(impl.verify_reads_count, 1u);
  EXPECT_EQ(view(impl.verify_reads[0].name), "H");
  int64_t h = 8;
  const opmux_facts facts{
      sizeof(opmux_facts), 0, &h,
      [](const void* context, uint32_t kind, opmux_str name, int64_t* value) -> int32_t {
        *value = *static_cast<const int64_t*>(context);
        return kind == OPMUX_FACT_DIM && view(name) == "H";
      }};
  Sink why;
  EXPECT_EQ(impl.verify(impl.user_data, &facts, &why.c), OPMUX_OK);
  h = 9;
  EXPECT_EQ(impl.verify(impl.user_data, &facts, &why.c), OPMUX_DECLINED);
  EXPECT_EQ(why.message(), "H is not 8");
}

TEST(PluginCaps, arrays_live_in_the_plugin) {
  const Sealed sealed(op::Impl{"f", "v"}
                          .run([](const op::Call&) {})
                          .caps(op::Caps{}
                                    .dtypes({op::f32, op::bf16})
                                    .dtypes("index", {op::i64})
                                    .multiple_of("H", 16)
                                    .at_most("rows", 99)
                                    .inner_contiguous("x")
                                    .rank("x", 2, 3)
                                    .scalar("style", {0, 2})
                                    .cpu_features("avx2,fma")));
  const opmux_caps& caps = *sealed.impl().caps;
  ASSERT_EQ(caps.dtype_count, 2u);
  EXPECT_EQ(caps.dtypes[0].dtypes[1].code, OPMUX_DTYPE_BFLOAT);
  EXPECT_EQ(view(caps.dtypes[1].arg), "index");
  EXPECT_EQ(caps.dtypes[1].dtypes[0].bits, 64);
  ASSERT_EQ(caps.dim_count, 2u);
  EXPECT_EQ(caps.dims[1].relation, uint32_t{OPMUX_AT_MOST});
  EXPECT_EQ(caps.dims[1].value, 99);
  ASSERT_EQ(caps.tensor_count, 2u);
  EXPECT_EQ(caps.tensors[0].flags, OPMUX_TENSOR_INNER_CONTIGUOUS);
  EXPECT_EQ(caps.tensors[1].max_rank, 3);
  ASSERT_EQ(caps.scalar_count, 1u);
  EXPECT_EQ(caps.scalars[0].values[1], 2);
  EXPECT_EQ(view(caps.cpu_features), "avx2,fma");
}

int32_t query(const opmux_host* host, opmux_plugin* out) {
  return op::answer(host, out, [] {
    return op::Plugin{"acme", "1.0"}
        .vendor("acme")
        .add(op::Backend{"acme", OPMUX_KIND_VENDOR}.vendor("acme").available(
            [](opmux_error* why) { return op::decline(why, "acme.card", "no card"); }))
        .schema("acme.twice(out Tensor y[N], Tensor x[N])")
        .point("gemm.tile_n(Device) -> int", "acme",
               [](op::Impl::Args args) -> std::optional<opmux_arg> {
                 if (args[0].value.i64 == 0) return std::nullopt;
                 return enum_arg(64);
               })
        .init([](const opmux_host*) { throw std::runtime_error("no driver"); })
        .self_test([] { return OPMUX_OK; })
        .shutdown([] { throw 1; });
  });
}

TEST(PluginQuery, fills_the_whole_struct) {
  const LoadedPlugin plugin(query);
  const opmux_plugin& c = plugin.c();
  EXPECT_EQ(c.struct_size, sizeof c);
  EXPECT_EQ(c.abi_major, OPMUX_ABI_MAJOR);
  EXPECT_EQ(view(c.name), "acme");
  EXPECT_EQ(view(plugin.backend().vendor), "acme");
  ASSERT_EQ(c.operator_count, 1u);
  EXPECT_EQ(view(c.operators[0].text), "acme.twice(out Tensor y[N], Tensor x[N])");
}

TEST(PluginQuery, writes_no_more_than_an_older_host_has_room_for) {
  alignas(opmux_plugin) unsigned char memory[sizeof(opmux_plugin)];
  std::memset(memory, 0x5a, sizeof memory);
  const uint32_t older = offsetof(opmux_plugin, operators);
  std::memcpy(memory, &older, sizeof older);
  ASSERT_EQ(query(nullptr, reinterpret_cast<opmux_plugin*>(memory)), OPMUX_OK);
  const auto* out = reinterpret_cast<const opmux_plugin*>(memory);
  EXPECT_EQ(out->struct_size, older);
  EXPECT_EQ(out->backend_count, 1u);
  for (size_t i = older; i < sizeof memory; ++i) ASSERT_EQ(memory[i], 0x5a) << i;
}

TEST(PluginQuery, tells_a_newer_host_how_much_it_wrote) {
  struct {
    opmux_plugin plugin;
    uint64_t later_field;
  } newer{};
  newer.plugin.struct_size = sizeof newer;
  newer.later_field = 77;
  ASSERT_EQ(query(nullptr, &newer.plugin), OPMUX_OK);
  EXPECT_EQ(newer.plugin.struct_size, sizeof(opmux_plugin));
  EXPECT_EQ(newer.later_field, 77u);
}

TEST(PluginQuery, refuses_a_struct_without_room_for_its_size) {
  opmux_plugin out{};
  EXPECT_EQ(query(nullptr, &out), OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(query(nullptr, nullptr), OPMUX_INVALID_ARGUMENT);
}

TEST(PluginHooks, exceptions_become_outcomes) {
  const LoadedPlugin plugin(query);
  const opmux_plugin& c = plugin.c();
  Sink sink;
  EXPECT_EQ(c.init(c.user_data, nullptr, &sink.c), OPMUX_FAILED);
  EXPECT_EQ(sink.message(), "no driver");
  EXPECT_EQ(c.self_test(c.user_data, &sink.c), OPMUX_OK);
  c.shutdown(c.user_data);
  EXPECT_EQ(plugin.backend().is_available(plugin.backend().user_data, &sink.c), OPMUX_DECLINED);
  EXPECT_EQ(sink.message(), "no card");
}

TEST(PluginPoint, no_answer_and_an_answer_differ) {
  const LoadedPlugin plugin(query);
  const opmux_point& point = plugin.c().points[0];
  opmux_arg device = enum_arg(0), answer{};
  EXPECT_EQ(point.answer(point.user_data, &device, 1, &answer), OPMUX_DECLINED);
  device.value.i64 = 1;
  EXPECT_EQ(point.answer(point.user_data, &device, 1, &answer), OPMUX_OK);
  EXPECT_EQ(answer.value.i64, 64);
}

TEST(PluginExample, in_the_documentation_compiles_and_runs) {
  const LoadedPlugin plugin(opmux_plugin_query_v1_acme);
  Tensor x(kF32, {3}), y = x;
  x.fill([](int64_t i) { return double(i); });
  ASSERT_EQ(call(*plugin.find("acme.twice", "plain"), {arg(y), arg(x)}).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(2), 4);
}

TEST(CPlugin, one_c_file_against_one_header_is_a_plugin) {
  const LoadedPlugin plugin(opmux_plugin_query_v1_tiny);
  const opmux_impl* impl = plugin.find("tiny.twice", "plain");
  ASSERT_NE(impl, nullptr);
  EXPECT_EQ(impl->caps->dims[0].value, 2);
  Tensor x(kF32, {4}), y = x;
  x.fill([](int64_t i) { return double(i); });
  ASSERT_EQ(call(*impl, {arg(y), arg(x)}).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(3), 6);
}

}  // namespace
}  // namespace opmux::testing
