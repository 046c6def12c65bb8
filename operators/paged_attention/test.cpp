#include "paged_case.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

const opmux_impl& paged_attention() { return reference("paged_attention"); }

TEST(ReferencePagedAttention, serves_decode_and_prefill_at_once_for_every_type_and_stride) {
  expect_mixed_batches(paged_attention(), kLayouts);
}

TEST(ReferencePagedAttention, honours_window_sink_softcap_scale_and_causal) {
  expect_options_honoured(paged_attention());
}

TEST(ReferencePagedAttention, a_sequence_without_keys_gives_zeros_and_one_without_queries_nothing) {
  PagedCase paged;
  paged.add(0, 2, {});
  paged.add(7, 0, {1, 2});
  paged.add(3, 5, {6});
  ASSERT_EQ(paged.run(paged_attention()).outcome, OPMUX_OK);
  expect_close(paged.y, paged.expected());
  for (int64_t i = 0; i < 4 * 4 * 6; ++i) EXPECT_EQ(paged.y.get(i), 0) << i;
  EXPECT_NE(paged.y.get(4 * 4 * 6), 0);
}

TEST(ReferencePagedAttention, positions_past_the_end_of_a_sequence_are_not_read) {
  PagedCase paged;
  paged.add(6, 1, {2, 3});
  for (int64_t i = 0; i < paged.k_cache.elements(); ++i) {
    const int64_t slot = i / 16;
    if (slot < 8 || slot >= 14) paged.k_cache.set(i, NAN);
  }
  for (int64_t i = 0; i < paged.v_cache.elements(); ++i) {
    const int64_t slot = i / 12;
    if (slot < 8 || slot >= 14) paged.v_cache.set(i, NAN);
  }
  ASSERT_EQ(paged.run(paged_attention()).outcome, OPMUX_OK);
  expect_close(paged.y, paged.expected());
}

void expect_refused(PagedCase& paged, const std::string& code, const std::string& text) {
  const auto r = paged.run(paged_attention());
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, code);
  EXPECT_EQ(r.text, text);
  const Tensor untouched = make(kF32, {paged.starts.back(), 4, 6});
  EXPECT_EQ(paged.y.bytes(), untouched.bytes());
}

TEST(ReferencePagedAttention, wrong_data_is_an_invalid_argument_and_nothing_is_written) {
  for (int64_t block : {-1, 8}) {
    PagedCase paged;
    paged.add(4, 1, {0});
    paged.add(5, 1, {1, block});
    expect_refused(paged, "paged.block",
                   "block " + std::to_string(block) + " of sequence 1 is outside [0, 8)");
  }
  for (int64_t keys : {-1, 21}) {
    PagedCase paged;
    paged.add(keys, 1, {0, 1, 2, 3, 4});
    expect_refused(paged, "paged.seq_len",
                   "length " + std::to_string(keys) + " of sequence 0 is outside [0, 20]");
  }
  PagedCase falls;
  falls.add(4, 3, {0});
  falls.add(4, -1, {0});
  falls.add(4, 1, {0});
  expect_refused(falls, "paged.query_start", "query_start must rise from 0 to T, which is 3");
  PagedCase late;
  late.starts = {1};
  late.add(4, 3, {0});
  expect_refused(late, "paged.query_start", "query_start must rise from 0 to T, which is 4");
}

}  // namespace
}  // namespace opmux::testing
