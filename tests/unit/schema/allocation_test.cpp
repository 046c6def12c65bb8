#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "tests/unit/schema/argument_list.hpp"

namespace {
thread_local size_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Not inlined, because the compiler would warn about mismatched new and delete.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace opmux::schema {
namespace {

TEST(ArgumentPath, allocates_nothing_on_success) {
  const Schema schema = schema_of(
      "f(out Tensor(E) y[..., H], Tensor(E) x[..., H2], Tensor? w[H], enum{p, q} m = p, "
      "str s = \"long enough to need memory of its own\", int[] l = [1, 2]) where H2 == 2 * H");
  ArgumentList list;
  list.f32({2, 3, 4}).f32({2, 3, 8}).f32({4}).text("q");
  Arguments arguments;
  BoundDims dims;
  const size_t before = allocations;
  const bool normal = list.normalise(schema, arguments).ok();
  const bool checked = check_arguments(schema, arguments, dims).ok();
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(normal && checked);
  EXPECT_GT(before, 0u);
}

}  // namespace
}  // namespace opmux::schema
