#include "registry/implementation/capability.hpp"

#include <array>

#include <gtest/gtest.h>

namespace opmux::registry {
namespace {

constexpr const char* kText =
    "norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6, "
    "int window = 0, bool causal = false, enum{none, tanh} mode = none)";

/// A call of the schema above whose parts a test can change.
struct Call {
  schema::Schema schema = schema::parse_schema(kText).value();
  alignas(64) std::array<char, 128> memory{};
  std::array<TensorView, 3> tensors;
  schema::Arguments arguments;
  schema::BoundDims dims{};
  uint32_t ambient = 0;

  Call() {
    set(0, TensorView(memory.data(), f32, {32, 4096}));
    set(1, TensorView(memory.data(), f32, {32, 4096}));
    set(2, TensorView(memory.data(), f32, {4096}));
    arguments.count = 7;
    arguments.tags = {ArgTag::tensor,  ArgTag::tensor,  ArgTag::tensor,     ArgTag::floating,
                      ArgTag::integer, ArgTag::logical, ArgTag::enumeration};
    arguments.values[3].f64 = 1e-6;
    for (const size_t scalar : {4u, 5u, 6u}) arguments.values[scalar].i64 = 0;
    dims.values.fill(-1);
    dims.values[0] = 4096;
    dims.leading_rank = 1;
    dims.rows = 32;
  }
  void set(size_t arg, const TensorView& tensor) {
    tensors[arg] = tensor;
    arguments.values[arg].tensor = &tensors[arg];
  }
  schema::Signature signature() const { return {&schema, &arguments, &dims, ambient, 0}; }

  /// Message of the first failing check, or "".
  std::string refusal(const Caps& caps) const {
    const Capability capability = compile_caps(caps, schema).value();
    const CapabilityCheck* failing = first_failing(capability, signature());
    if (failing == nullptr) return "";
    return std::string(code_of(failing->reason)) + ": " + describe_failure(*failing, signature());
  }
  Status compile_error(const Caps& caps) const { return compile_caps(caps, schema).error(); }
};

TEST(Capability, nothing_mentioned_is_nothing_refused) { EXPECT_EQ(Call().refusal(Caps{}), ""); }

TEST(Capability, multiple_of) {
  EXPECT_EQ(Call().refusal(Caps{}.multiple_of("H", 16)), "");
  EXPECT_EQ(Call().refusal(Caps{}.multiple_of("H", 4100)),
            "caps.multiple_of: H must be a multiple of 4100, is 4096");
}

TEST(Capability, bounds_of_a_dimension) {
  EXPECT_EQ(Call().refusal(Caps{}.at_least("H", 4096).at_most("H", 4096).equals("H", 4096)), "");
  EXPECT_EQ(Call().refusal(Caps{}.at_least("H", 4097)),
            "caps.at_least: H must be at least 4097, is 4096");
  EXPECT_EQ(Call().refusal(Caps{}.at_most("H", 64)), "caps.at_most: H must be at most 64, is 4096");
  EXPECT_EQ(Call().refusal(Caps{}.equals("H", 64)), "caps.equals: H must be 64, is 4096");
}

TEST(Capability, rows_are_a_dimension) {
  EXPECT_EQ(Call().refusal(Caps{}.at_least("rows", 33)),
            "caps.at_least: rows must be at least 33, is 32");
}

TEST(Capability, dtypes_of_one_argument) {
  Call call;
  call.set(1, TensorView(call.memory.data(), f16, {32, 4096}));
  EXPECT_EQ(call.refusal(Caps{}.dtypes("x", {f32, bf16})),
            "caps.dtype: dtype(x) must be f32 or bf16, is f16");
  EXPECT_EQ(call.refusal(Caps{}.dtypes("y", {f32})), "");
}

TEST(Capability, dtypes_without_a_name_cover_every_tensor_that_no_other_rule_names) {
  Call call;
  call.set(2, TensorView(call.memory.data(), bf16, {4096}));
  EXPECT_EQ(call.refusal(Caps{}.dtypes({f32})), "caps.dtype: dtype(weight) must be f32, is bf16");
  EXPECT_EQ(call.refusal(Caps{}.dtypes({f32}).dtypes("weight", {f32, f16, bf16})), "");
}

TEST(Capability, an_absent_tensor_passes_every_check_about_it) {
  Call call;
  call.set(2, TensorView());
  EXPECT_EQ(call.refusal(Caps{}
                             .dtypes("weight", {i8})
                             .contiguous("weight")
                             .rank("weight", 2, 3)
                             .aligned("weight", 4096)
                             .layout("weight", "10")),
            "");
}

TEST(Capability, contiguous) {
  Call call;
  const std::array<int64_t, 2> shape{32, 4096}, strides{8192, 1}, columns{1, 32};
  call.set(1, TensorView(call.memory.data(), f32, shape, strides));
  EXPECT_EQ(call.refusal(Caps{}.contiguous()), "caps.contiguous: x must be contiguous");
  EXPECT_EQ(call.refusal(Caps{}.contiguous("y")), "");
  EXPECT_EQ(call.refusal(Caps{}.inner_contiguous()), "");
  call.set(1, TensorView(call.memory.data(), f32, shape, columns));
  EXPECT_EQ(call.refusal(Caps{}.inner_contiguous("x")),
            "caps.inner_contiguous: the last dimension of x must have stride 1");
}

TEST(Capability, rank) {
  EXPECT_EQ(Call().refusal(Caps{}.rank("x", 2, 2)), "");
  EXPECT_EQ(Call().refusal(Caps{}.rank("x", 3, 0)), "caps.rank: rank(x) must be at least 3, is 2");
  EXPECT_EQ(Call().refusal(Caps{}.rank("x", 0, 1)), "caps.rank: rank(x) must be at most 1, is 2");
}

TEST(Capability, alignment) {
  Call call;
  call.set(1, TensorView(call.memory.data() + 16, f32, {32, 4096}));
  EXPECT_EQ(call.refusal(Caps{}.aligned("x", 16)), "");
  EXPECT_EQ(call.refusal(Caps{}.aligned("x", 64)),
            "caps.alignment: x must be aligned to 64 bytes, is aligned to 16");
}

TEST(Capability, layout) {
  EXPECT_EQ(Call().refusal(Caps{}.layout("x", "01")), "");
  EXPECT_EQ(Call().refusal(Caps{}.layout("x", "10")), "caps.layout: layout(x) must be 10, is 01");
}

TEST(Capability, absent_and_given) {
  Call call;
  EXPECT_EQ(call.refusal(Caps{}.present("weight")), "");
  EXPECT_EQ(call.refusal(Caps{}.absent("weight")), "caps.absent: weight must be absent");
  call.set(2, TensorView());
  EXPECT_EQ(call.refusal(Caps{}.absent("weight")), "");
  EXPECT_EQ(call.refusal(Caps{}.present("weight")), "caps.present: weight must be given");
}

TEST(Capability, scalars_are_reported_as_words) {
  Call call;
  call.arguments.values[4].i64 = 128;
  call.arguments.values[5].i64 = 1;
  call.arguments.values[6].i64 = 1;
  EXPECT_EQ(call.refusal(Caps{}.scalar("window", {0, 64, 256})),
            "caps.scalar: window must be 0, 64 or 256, is 128");
  EXPECT_EQ(call.refusal(Caps{}.scalar("causal", {0})),
            "caps.scalar: causal must be false, is true");
  EXPECT_EQ(call.refusal(Caps{}.scalar("mode", {0})), "caps.scalar: mode must be none, is tanh");
  EXPECT_EQ(call.refusal(Caps{}.scalar("mode", {0, 1}).scalar("causal", {1})), "");
}

TEST(Capability, device_type_counts_and_its_number_does_not) {
  Call call;
  EXPECT_EQ(call.refusal(Caps{}.device(OPMUX_DEVICE_OPENCL)),
            "caps.device: device(y) must be opencl, is cpu");
  call.set(0, TensorView(call.memory.data(), f32, {32, 4096}, Device{OPMUX_DEVICE_CUDA, 3}));
  EXPECT_EQ(call.refusal(Caps{}.device(OPMUX_DEVICE_CUDA)), "");
  EXPECT_EQ(call.refusal(Caps{}), "caps.device: device(y) must be cpu, is cuda");
}

TEST(Capability, inference_only) {
  Call call;
  EXPECT_EQ(call.refusal(Caps{}.inference_only()), "");
  call.ambient = schema::kGrad;
  EXPECT_EQ(call.refusal(Caps{}.inference_only()),
            "caps.inference_only: grad must be off: the implementation is for inference only");
  EXPECT_EQ(call.refusal(Caps{}), "");
}

TEST(Capability, features_that_this_cpu_lacks_are_found_at_compilation) {
  const Call call;
  const auto lacking = compile_caps(Caps{}.cpu_features("no_such_feature"), call.schema).value();
  EXPECT_EQ(lacking.machine, Reason::caps_cpu_features);
  EXPECT_EQ(lacking.machine_text, "this CPU lacks no_such_feature");
  EXPECT_EQ(compile_caps(Caps{}, call.schema)->machine, Reason::none);
}

TEST(Capability, an_unknown_name_is_refused_with_the_nearest) {
  const Status argument = Call().compile_error(Caps{}.contiguous("wieght"));
  EXPECT_EQ(argument.reason(), "caps.unknown_name");
  EXPECT_EQ(argument.message(),
            "capabilities name the argument 'wieght', which norm does not have; did you mean "
            "'weight'?");
  EXPECT_EQ(Call().compile_error(Caps{}.multiple_of("row", 2)).message(),
            "capabilities name the dimension 'row', which norm does not have; did you mean "
            "'rows'?");
  EXPECT_EQ(Call().compile_error(Caps{}.scalar("windo", {0})).reason(), "caps.unknown_name");
  EXPECT_EQ(Call().compile_error(Caps{}.absent("bias")).reason(), "caps.unknown_name");
  EXPECT_EQ(Call().compile_error(Caps{}.dtypes("z", {f32})).reason(), "caps.unknown_name");
}

TEST(Capability, a_value_out_of_range_is_refused) {
  Caps undefined_relation, undefined_flag, absent_and_given, absent_everything;
  undefined_relation.dim_rules.push_back({"H", 9, 1});
  undefined_flag.tensor_rules.push_back({.arg = "x", .flags = 1u << 20});
  absent_and_given.tensor_rules.push_back(
      {.arg = "weight", .flags = OPMUX_TENSOR_ABSENT | OPMUX_TENSOR_PRESENT});
  absent_everything.tensor_rules.push_back({.flags = OPMUX_TENSOR_ABSENT});
  const std::vector<Caps> all{
      Caps{}.multiple_of("H", 0),
      Caps{}.at_least("H", -1),
      Caps{}.dtypes("x", {}),
      Caps{}.dtypes("x", {DType{}}),
      Caps{}.dtypes("eps", {f32}),
      Caps{}.contiguous("eps"),
      Caps{}.rank("x", 3, 2),
      Caps{}.rank("x", -1, 2),
      Caps{}.rank("x", 0, 9),
      Caps{}.aligned("x", 48),
      Caps{}.aligned("x", 8192),
      Caps{}.layout("x", "02"),
      Caps{}.layout("x", "00"),
      Caps{}.layout("x", "ab"),
      Caps{}.absent("x"),
      Caps{}.scalar("window", {}),
      Caps{}.scalar("mode", {2}),
      Caps{}.scalar("causal", {2}),
      Caps{}.scalar("eps", {1}),
      Caps{}.scalar("x", {1}),
      Caps{}.device(-1),
      Caps{}.device(70000),
      Caps{}.arch("sm_80", ""),
      Caps{}.arch("9.0", "8.10"),
      undefined_relation,
      undefined_flag,
      absent_and_given,
      absent_everything,
  };
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(Call().compile_error(all[i]).reason(), "caps.value") << i;
  }
}

TEST(Capability, an_architecture_range_is_numbers_with_dots) {
  const Capability capability = compile_caps(Caps{}.arch("8.6", "9"), Call().schema).value();
  EXPECT_TRUE(capability.arch.limited());
  EXPECT_EQ(capability.arch.lowest, "8.6");
  EXPECT_EQ(capability.arch.highest, "9");
  EXPECT_FALSE(compile_caps(Caps{}, Call().schema)->arch.limited());
}

TEST(Capability, dependencies_are_questions_about_dimensions_and_exact_facts_otherwise) {
  const Call call;
  schema::Dependencies dependencies;
  add_dependencies(
      compile_caps(Caps{}.multiple_of("H", 16).dtypes("x", {f32}).inference_only(), call.schema)
          .value(),
      dependencies);
  ASSERT_EQ(dependencies.questions().size(), 1u);
  EXPECT_EQ(dependencies.questions()[0],
            (schema::Predicate{{schema::FactKind::dim, 0}, schema::Relation::multiple_of, 16}));
  EXPECT_EQ(dependencies.exact(), (std::vector<schema::Fact>{{schema::FactKind::dtype, 1},
                                                             {schema::FactKind::device, 0},
                                                             {schema::FactKind::ambient, 0}}));
}

}  // namespace
}  // namespace opmux::registry
