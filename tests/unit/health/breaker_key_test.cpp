#include "health/breaker_key.hpp"

#include <array>

namespace opmux::health {
namespace {

struct Call {
  explicit Call(const TensorView& x) : view(x) {
    arguments.count = 2;
    for (size_t i = 0; i < 2; ++i) {
      arguments.tags[i] = ArgTag::tensor;
      arguments.values[i].tensor = &view;
    }
    dims.values.fill(-1);
    dims.values[0] = view.dim(view.rank() - 1);
    dims.leading_rank = view.rank() - 1;
    dims.rows = view.elements() / std::max<int64_t>(1, dims.values[0]);
  }
  BreakerKey key() const { return BreakerKey::of({&schema, &arguments, &dims, 0, 0}); }

  schema::Schema schema =
      schema::parse_schema("copy(out Tensor y[..., H], Tensor x[..., H])").value();
  TensorView view;
  schema::Arguments arguments;
  schema::BoundDims dims;
};

BreakerKey key_of(int64_t rows, int64_t h, DType dtype = f32) {
  return Call(TensorView(static_cast<void*>(nullptr), dtype, {rows, h})).key();
}

TEST(BreakerKey, sizes_between_two_powers_of_two_are_one_class) {
  EXPECT_EQ(key_of(3, 4096), key_of(4, 2049));
  EXPECT_NE(key_of(3, 4096), key_of(3, 4097));
  EXPECT_NE(key_of(3, 4096), key_of(3, 2048));
  EXPECT_NE(key_of(4, 8), key_of(5, 8));
  EXPECT_EQ(key_of(1, 8).log2[schema::kRowsDim], 0);
}

TEST(BreakerKey, element_types_and_devices_are_separate_classes) {
  EXPECT_NE(key_of(4, 8), key_of(4, 8, bf16));
  const TensorView far(static_cast<void*>(nullptr), f32, {4, 8}, Device{OPMUX_DEVICE_CUDA, 1});
  EXPECT_NE(Call(far).key(), key_of(4, 8));
}

TEST(BreakerKey, says_what_its_class_is) {
  const Call call(TensorView(static_cast<void*>(nullptr), f32, {3, 4096}));
  EXPECT_EQ(describe(call.key(), call.schema), "f32 H<=4096 rows<=4 on cpu:0");
}

TEST(BreakerKey, lists_the_facts_that_distinguish_its_class) {
  const Call call(TensorView(static_cast<void*>(nullptr), f32, {3, 4096}));
  schema::Dependencies asked;
  add_questions(call.key(), call.schema, asked);
  const auto answers = [&](int64_t rows, int64_t h) {
    const Call other(TensorView(static_cast<void*>(nullptr), f32, {rows, h}));
    const schema::Signature signature{&other.schema, &other.arguments, &other.dims, 0, 0};
    std::vector<bool> all;
    for (const auto& question : asked.questions()) all.push_back(holds(question, signature));
    return all;
  };
  EXPECT_EQ(answers(3, 4096), answers(4, 2049));
  EXPECT_NE(answers(3, 4096), answers(3, 4097));
  EXPECT_NE(answers(3, 4096), answers(2, 4096));
}

}  // namespace
}  // namespace opmux::health
