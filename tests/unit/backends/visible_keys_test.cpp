#include "backends/common/visible_keys.hpp"

#include <gtest/gtest.h>

#include "expected_attention.hpp"

namespace opmux::testing {
namespace {

TEST(VisibleKeys, agree_with_the_definition_for_every_small_case) {
  for (int64_t queries = 1; queries < 6; ++queries) {
    for (int64_t keys = 0; keys < 6; ++keys) {
      for (int64_t window : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{5}, INT64_MAX}) {
        for (bool causal : {false, true}) {
          for (int64_t i = 0; i < queries; ++i) {
            const auto range = backends::visible_keys(i, queries, keys, causal, window);
            for (int64_t j = 0; j < keys; ++j) {
              ASSERT_EQ(j >= range.first && j < range.last,
                        sees_by_position({.causal = causal, .window = window}, i, queries, keys, j))
                  << queries << " " << keys << " " << window << " " << i << " " << j;
            }
            ASSERT_LE(0, range.first);
            ASSERT_LE(range.first, range.last);
            ASSERT_LE(range.last, keys);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace opmux::testing
