#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.h>

namespace opmux {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// An error that the C API fills in.
struct CError {
  std::array<char, 512> text{};
  opmux_error c{sizeof(opmux_error), 0, text.data(), text.size(), 0, {nullptr, 0}};
  std::string code() const { return {c.code.data, c.code.size}; }
  std::string message() const { return {c.text, c.text_size}; }
};

/// A program with an implementation of linear whose functions call back into the runtime.
class ReentryTest : public testing::Test {
 protected:
  using Function = std::function<void()>;

  void SetUp() override {
    static opmux_options options{};
    options.struct_size = sizeof(options);
    options.flags = OPMUX_OPTION_NO_BACKENDS;
    static const opmux_variable none{};
    options.environment = &none;
    ASSERT_EQ(opmux_runtime_create(&options, &runtime_, nullptr), OPMUX_OK);
    ASSERT_EQ(opmux_operator_get(runtime_, opmux_str_of("linear"), &op_, nullptr), OPMUX_OK);
    y_tensor_ = {y_, {OPMUX_DEVICE_CPU, 0}, 2, {OPMUX_DTYPE_FLOAT, 32, 1}, shape_, nullptr, 0};
    x_tensor_ = {x_, {OPMUX_DEVICE_CPU, 0}, 2, {OPMUX_DTYPE_FLOAT, 32, 1}, shape_, nullptr, 0};
    w_tensor_ = {w_, {OPMUX_DEVICE_CPU, 0}, 2, {OPMUX_DTYPE_FLOAT, 32, 1}, square_, nullptr, 0};
    ASSERT_EQ(opmux_constant_create(runtime_, &w_tensor_, &constant_, nullptr), OPMUX_OK);
    args_ = {opmux_arg_tensor(&y_tensor_), opmux_arg_tensor(&x_tensor_),
             opmux_arg_constant(constant_)};
    implement();
  }
  void TearDown() override {
    opmux_withdraw(registration_, nullptr);
    opmux_constant_destroy(constant_);
    opmux_runtime_destroy(runtime_);
  }

  static ReentryTest& of(void* self) { return *static_cast<ReentryTest*>(self); }
  static void do_now(Function& function) {
    if (!function) return;
    // Once, so that an allowed call does not call itself without end.
    const Function now = std::move(function);
    function = nullptr;
    now();
  }

  void implement() {
    opmux_impl impl{};
    impl.struct_size = sizeof(impl);
    impl.op = opmux_str_of("linear");
    impl.variant = opmux_str_of("v1");
    impl.priority = 950;
    impl.user_data = this;
    impl.verify = [](void* self, const opmux_facts*, opmux_error*) -> int32_t {
      return do_now(of(self).in_verify_), OPMUX_OK;
    };
    impl.plan = [](void* self, const opmux_call*, void** prepared) -> int32_t {
      *prepared = nullptr;
      return do_now(of(self).in_plan_), OPMUX_OK;
    };
    impl.create = [](void* self, const opmux_arg*, uint32_t, void** instance,
                     opmux_error*) -> int32_t {
      *instance = self;
      return do_now(of(self).in_create_), OPMUX_OK;
    };
    impl.load = [](void* self, void*, const opmux_arg*, uint32_t, opmux_error*) -> int32_t {
      return do_now(of(self).in_load_), OPMUX_OK;
    };
    impl.destroy = [](void*, void*) {};
    impl.run = [](void*, const opmux_call*) -> int32_t { return OPMUX_OK; };
    opmux_backend backend{};
    backend.struct_size = sizeof(backend);
    backend.name = opmux_str_of("mine");
    backend.kind = OPMUX_KIND_VENDOR;
    backend.device_type = OPMUX_DEVICE_CPU;
    backend.vendor = opmux_str_of("me");
    backend.priority = -1;
    backend.user_data = this;
    backend.is_available = [](void* self, opmux_error*) -> int32_t {
      return do_now(of(self).in_is_available_), OPMUX_OK;
    };
    backend.impls = &impl;
    backend.impl_count = 1;
    backend.impl_stride = sizeof(impl);
    CError error;
    ASSERT_EQ(opmux_implement(runtime_, &backend, &registration_, &error.c), OPMUX_OK)
        << error.message();
  }

  /// A call of linear that notes its answer.
  Function call_back() {
    return [this] {
      CError error;
      answer_ = opmux_call_operator(op_, args_.data(), 3, &error.c);
      code_ = error.code();
      message_ = error.message();
    };
  }
  /// Calls linear and returns the implementation that ran, or the error.
  std::string call() {
    opmux_report report{};
    report.struct_size = sizeof(report);
    CError error;
    const int32_t outcome =
        opmux_call_operator_with(op_, args_.data(), 3, nullptr, &report, &error.c);
    return outcome == OPMUX_OK ? report.implementation : error.message();
  }
  void expect_reentry_refused(const std::string& function) {
    EXPECT_EQ(call(), "linear/mine.v1") << "the call itself is served";
    EXPECT_EQ(answer_, OPMUX_FAILED);
    EXPECT_EQ(code_, "call.reentrant");
    EXPECT_THAT(message_, StartsWith("the " + function + " function of linear/mine.v1 called"));
    EXPECT_EQ(call(), "linear/mine.v1");
  }
  void expect_callback_refused() {
    EXPECT_EQ(call(), "linear/mine.v1") << "the call itself is served";
    EXPECT_EQ(answer_, OPMUX_FAILED);
    EXPECT_EQ(code_, "runtime.callback");
    EXPECT_THAT(message_, HasSubstr("is_available of backend mine called the runtime"));
  }

  opmux_runtime* runtime_ = nullptr;
  opmux_operator* op_ = nullptr;
  opmux_constant* constant_ = nullptr;
  opmux_registration* registration_ = nullptr;
  float y_[2] = {}, x_[2] = {1, 2}, w_[4] = {1, 0, 0, 1};
  int64_t shape_[2] = {1, 2}, square_[2] = {2, 2};
  opmux_tensor y_tensor_{}, x_tensor_{}, w_tensor_{};
  std::array<opmux_arg, 3> args_{};
  Function in_is_available_, in_verify_, in_plan_, in_create_, in_load_;
  int32_t answer_ = OPMUX_OK;
  std::string code_, message_;
};

TEST_F(ReentryTest, is_available_may_not_call_an_operator) {
  in_is_available_ = call_back();
  expect_callback_refused();
}

TEST_F(ReentryTest, is_available_may_not_list_operators) {
  in_is_available_ = [this] {
    CError error;
    size_t size = 0;
    answer_ = opmux_list_operators(runtime_, nullptr, 0, &size, &error.c);
    code_ = error.code();
    message_ = error.message();
  };
  expect_callback_refused();
}

TEST_F(ReentryTest, is_available_may_not_load_a_policy) {
  in_is_available_ = [this] {
    CError error;
    answer_ = opmux_policy_load(runtime_, opmux_str_of("opmux: 1\nrules: []\n"), opmux_str_of("p"),
                                &error.c);
    code_ = error.code();
    message_ = error.message();
  };
  expect_callback_refused();
}

TEST_F(ReentryTest, is_available_may_not_create_a_runtime) {
  in_is_available_ = [this] {
    CError error;
    opmux_runtime* another = nullptr;
    answer_ = opmux_runtime_create(nullptr, &another, &error.c);
    code_ = error.code();
    message_ = error.message();
  };
  expect_callback_refused();
}

TEST_F(ReentryTest, verify_may_not_call_its_operator) {
  in_verify_ = call_back();
  expect_reentry_refused("verify");
}

TEST_F(ReentryTest, verify_may_not_explain_its_operator) {
  std::string told;
  in_verify_ = [&] {
    std::array<char, 4096> text{};
    size_t size = 0;
    (void)opmux_explain(op_, args_.data(), 3, OPMUX_FORMAT_TEXT, text.data(), text.size(), &size,
                        nullptr);
    told.assign(text.data(), std::min(size, text.size()));
  };
  EXPECT_EQ(call(), "linear/mine.v1");
  EXPECT_THAT(told, HasSubstr("the verify function of linear/mine.v1 called linear"));
}

TEST_F(ReentryTest, plan_may_not_call_its_operator) {
  in_plan_ = call_back();
  expect_reentry_refused("plan");
}

TEST_F(ReentryTest, plan_may_not_bind_its_operator) {
  in_plan_ = [this] {
    CError error;
    opmux_plan* plan = nullptr;
    answer_ = opmux_plan_bind(op_, args_.data(), 3, 0, &plan, &error.c);
    code_ = error.code();
    message_ = error.message();
  };
  expect_reentry_refused("plan");
}

TEST_F(ReentryTest, create_may_not_call_its_operator) {
  in_create_ = call_back();
  expect_reentry_refused("create");
}

TEST_F(ReentryTest, load_may_not_call_its_operator) {
  in_load_ = call_back();
  expect_reentry_refused("load");
}

TEST_F(ReentryTest, plan_may_call_another_operator) {
  in_plan_ = [this] {
    opmux_operator* softmax = nullptr;
    opmux_operator_get(runtime_, opmux_str_of("softmax"), &softmax, nullptr);
    const std::array<opmux_arg, 2> args{args_[0], args_[1]};
    answer_ = opmux_call_operator(softmax, args.data(), 2, nullptr);
    code_ = "called";
  };
  EXPECT_EQ(call(), "linear/mine.v1");
  EXPECT_EQ(code_, "called");
  EXPECT_EQ(answer_, OPMUX_OK);
}

}  // namespace
}  // namespace opmux
