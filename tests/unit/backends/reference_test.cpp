#include "reference.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace opmux::testing {
namespace {

// The text of a schema file without comments, with single spaces.
std::string schema_text(const std::string& op) {
  std::ifstream file(OPMUX_TEST_OPERATORS "/" + op + "/" + op + ".schema");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

// The folders of operators/ that have a schema.
std::set<std::string> standard_operators() {
  std::set<std::string> names;
  for (const auto& folder : std::filesystem::directory_iterator(OPMUX_TEST_OPERATORS)) {
    const std::string name = folder.path().filename();
    if (std::filesystem::exists(folder.path() / (name + ".schema"))) names.insert(name);
  }
  return names;
}

TEST(ReferencePlugin, implements_the_standard_schemas_as_they_are_written) {
  const LoadedPlugin plugin(opmux_plugin_query_v1_reference);
  const opmux_backend& backend = plugin.backend();
  std::set<std::string> implemented;
  for (uint32_t i = 0; i < backend.impl_count; ++i) {
    const opmux_impl& impl = LoadedPlugin::at(backend.impls, backend.impl_stride, i);
    implemented.insert(std::string(view(impl.op)));
    EXPECT_EQ(view(impl.signature), schema_text(std::string(view(impl.op))));
    EXPECT_EQ(view(impl.variant), "scalar");
    EXPECT_EQ(impl.priority, -1);
  }
  EXPECT_EQ(implemented, standard_operators());
  EXPECT_EQ(implemented.size(), backend.impl_count);
  EXPECT_FALSE(implemented.empty());
}

TEST(ReferencePlugin, is_one_backend_of_kind_reference_on_the_cpu) {
  const LoadedPlugin plugin(opmux_plugin_query_v1_reference);
  ASSERT_EQ(plugin.c().backend_count, 1u);
  EXPECT_EQ(view(plugin.backend().name), "reference");
  EXPECT_EQ(plugin.backend().kind, OPMUX_KIND_REFERENCE);
  EXPECT_EQ(plugin.backend().device_type, OPMUX_DEVICE_CPU);
}

TEST(ReferencePlugin, positions_are_integers_and_all_else_is_float) {
  const opmux_caps& caps = *reference("rotary_embedding").caps;
  ASSERT_EQ(caps.dtype_count, 2u);
  EXPECT_EQ(view(caps.dtypes[0].arg), "positions");
  EXPECT_EQ(caps.dtypes[0].dtypes[0].code, OPMUX_DTYPE_INT);
  EXPECT_EQ(view(caps.dtypes[1].arg), "");
  EXPECT_EQ(caps.dtypes[1].count, 3u);
}

}  // namespace
}  // namespace opmux::testing
