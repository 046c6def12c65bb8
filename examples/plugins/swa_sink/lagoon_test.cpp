/// Tests an operator that opmux does not have: which implementation runs, whether both give the
/// same results, and whether these equal opmux's attention with the same window and sink.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

namespace {

constexpr const char* kOperator = "lagoon.attention_swa_sink";
constexpr int64_t kHeads = 4, kGroups = 2, kWidth = 16;

int failures = 0;

void expect(bool holds, const std::string& what, const std::string& found) {
  if (holds) return;
  std::cerr << "expected: " << what << "; found: " << found << "\n";
  ++failures;
}

struct Tensor {
  Tensor(std::vector<int64_t> shape, float seed) : sizes(std::move(shape)) {
    size_t count = 1;
    for (const int64_t size : sizes) count *= static_cast<size_t>(size);
    data.resize(count);
    for (size_t i = 0; i < count; ++i) data[i] = std::sin(seed * static_cast<float>(i + 1));
  }
  opmux::TensorView view() {
    return {data.data(), opmux::f32, std::span<const int64_t>(sizes), {}};
  }

  std::vector<int64_t> sizes;
  std::vector<float> data;
};

struct Call {
  Call(int64_t queries, int64_t keys)
      : q({2, queries, kHeads, kWidth}, 0.7F),
        k({2, keys, kGroups, kWidth}, 1.3F),
        v({2, keys, kGroups, kWidth}, 2.1F),
        sink({kHeads}, 3.3F) {}

  /// Result of the implementation `wanted`; fails if another one ran.
  std::vector<float> ask(opmux::Runtime& runtime, const std::string& wanted, int64_t window) {
    Tensor y(q.sizes, 0);
    opmux::CallReport report;
    const opmux::PolicyScope scope(runtime, {.require = {"impl:" + wanted}});
    const opmux::Status status = runtime.op(kOperator).value().with(report)(
        y.view(), q.view(), k.view(), v.view(), sink.view(), window);
    expect(status.ok() && report.implementation == wanted, wanted,
           report.implementation + status.to_string());
    return y.data;
  }
  std::vector<float> ask_attention(const opmux::Runtime& runtime, int64_t window) {
    Tensor y(q.sizes, 0);
    const opmux::Status status = runtime.call("attention", y.view(), q.view(), k.view(), v.view(),
                                              opmux::none, true, opmux::none, window, sink.view());
    expect(status.ok(), "attention", status.to_string());
    return y.data;
  }

  Tensor q, k, v, sink;
};

float distance(const std::vector<float>& a, const std::vector<float>& b) {
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

void means_the_same(opmux::Runtime& runtime, int64_t queries, int64_t keys, int64_t window) {
  Call call(queries, keys);
  const auto plain = call.ask(runtime, "lagoon.attention_swa_sink/lagoon_plain.two_pass", window);
  const auto online = call.ask(runtime, "lagoon.attention_swa_sink/lagoon.online", window);
  const auto standard = call.ask_attention(runtime, window);
  const std::string what = std::to_string(queries) + " of " + std::to_string(keys) + ", window " +
                           std::to_string(window);
  expect(distance(plain, online) < 1e-5F, what + ": online as the reference",
         std::to_string(distance(plain, online)));
  expect(distance(plain, standard) < 1e-5F, what + ": as attention",
         std::to_string(distance(plain, standard)));
}

/// Without a policy the vendor's implementation is chosen, because its priority is above the
/// reference's.
void is_chosen(const opmux::Runtime& runtime) {
  Call call(1, 8);
  Tensor y(call.q.sizes, 0);
  opmux::CallReport report;
  const opmux::Status status = runtime.op(kOperator).value().with(report)(
      y.view(), call.q.view(), call.k.view(), call.v.view(), call.sink.view());
  expect(report.implementation == "lagoon.attention_swa_sink/lagoon.online", "lagoon.online",
         report.implementation + status.to_string());
  const opmux::Status wrong = runtime.call(kOperator, y.view(), call.q.view(), call.k.view(),
                                           call.v.view(), call.sink.view(), -1);
  expect(wrong.code() == opmux::Code::invalid_argument, "window >= 0", wrong.to_string());
}

}  // namespace

int main() {
  opmux::Runtime runtime = opmux::Runtime::create().value();
  for (const int64_t window : {0, 1, 3, 64}) {
    means_the_same(runtime, 9, 9, window);   // prefill
    means_the_same(runtime, 1, 33, window);  // decode
    means_the_same(runtime, 4, 20, window);  // A chunk of a longer prompt.
  }
  is_chosen(runtime);
  return failures == 0 ? 0 : 1;
}
