#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "schema/arguments.hpp"

namespace opmux::schema {

inline constexpr std::string_view kRmsNorm =
    "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6)";

inline Schema schema_of(std::string_view text) {
  Result<Schema> schema = parse_schema(text);
  EXPECT_TRUE(schema.has_value()) << schema.error().to_string();
  return schema ? *schema : Schema{};
}

/// Builds the arguments of one call one by one; owns the data they point to.
class ArgumentList {
 public:
  ArgumentList& tensor(const TensorView& view) {
    ArgValue value;
    value.tensor = &views_.emplace_back(view);
    return add(ArgTag::tensor, value);
  }
  ArgumentList& tensor(DType dtype, std::initializer_list<int64_t> shape) {
    return tensor(TensorView{static_cast<void*>(nullptr), dtype, shape});
  }
  ArgumentList& f32(std::initializer_list<int64_t> shape) { return tensor(opmux::f32, shape); }
  ArgumentList& none() { return add(ArgTag::none, {}); }
  ArgumentList& integer(int64_t number, ArgTag tag = ArgTag::integer) {
    ArgValue value;
    value.i64 = number;
    return add(tag, value);
  }
  ArgumentList& floating(double number) {
    ArgValue value;
    value.f64 = number;
    return add(ArgTag::floating, value);
  }
  ArgumentList& text(std::string_view word) {
    return list(ArgTag::string, {word.data(), word.size()});
  }
  ArgumentList& list(ArgTag tag, opmux_list list) {
    ArgValue value;
    value.list = &lists_.emplace_back(list);
    return add(tag, value);
  }
  ArgumentList& tensors(std::initializer_list<TensorView> views) {
    auto& pointers = pointers_.emplace_back();
    for (const TensorView& view : views) pointers.push_back(&views_.emplace_back(view));
    return list(ArgTag::tensor_list, {pointers.data(), pointers.size()});
  }

  Status normalise(const Schema& schema, Arguments& out) const {
    return opmux::schema::normalise(schema, site_, values_.data(), out);
  }

 private:
  ArgumentList& add(ArgTag tag, ArgValue value) {
    site_.push(tag);
    values_.push_back(value);
    return *this;
  }

  CallSite site_;
  std::vector<ArgValue> values_;
  std::deque<TensorView> views_;
  std::deque<opmux_list> lists_;
  std::deque<std::vector<const TensorView*>> pointers_;
};

}  // namespace opmux::schema
