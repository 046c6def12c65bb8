#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <exception>
#include <string_view>

#include "trial.hpp"

namespace opmux::property {
namespace {

/// --seed=N runs a single registry; --first, --registries and --draws set the size of the test.
struct Sizes {
  uint64_t first = 1, registries = 100, draws = 100;
};
Sizes sizes;

bool take_option(std::string_view argument, std::string_view name, uint64_t& into) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  return std::from_chars(argument.data(), argument.data() + argument.size(), into).ec ==
         std::errc();
}

std::string disagreement(uint64_t seed, uint64_t draws) {
  try {
    Trial trial(seed);
    for (uint64_t i = 0; i < draws; ++i) {
      if (std::string found = trial.draw(); !found.empty())
        return "draw " + std::to_string(i) + ": " + found;
    }
  } catch (const std::exception& thrown) {
    return std::string("the world cannot be built: ") + thrown.what();
  }
  return {};
}

TEST(Selection, agrees_with_the_plain_model_in_choice_and_reasons) {
  for (uint64_t i = 0; i < sizes.registries && !HasNonfatalFailure(); ++i) {
    const uint64_t seed = sizes.first + i;
    const std::string found = disagreement(seed, sizes.draws);
    if (!found.empty()) ADD_FAILURE() << "run again with --seed=" << seed << "\n" << found;
  }
}

}  // namespace
}  // namespace opmux::property

int main(int argc, char** argv) {
  using namespace opmux::property;
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (take_option(argv[i], "--seed=", sizes.first)) sizes.registries = 1;
    take_option(argv[i], "--first=", sizes.first);
    take_option(argv[i], "--registries=", sizes.registries);
    take_option(argv[i], "--draws=", sizes.draws);
  }
  return RUN_ALL_TESTS();
}
