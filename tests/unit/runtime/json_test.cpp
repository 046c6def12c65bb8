#include <opmux/runtime.hpp>

#include <gtest/gtest.h>

namespace opmux {
namespace {

TEST(Json, holds_all_of_an_explanation) {
  Explanation e;
  e.op = "f";
  e.arguments = "x=f32[2]";
  e.device = "cpu:0";
  e.generation = 3;
  e.chosen = "f/a.b";
  e.strict = true;
  e.candidates = {{"f/a.b", "chosen", "", "priority 50", 50, 62.5, "widen"}};
  e.depends_on = {"H"};
  e.independent = {"rows"};
  e.note = "n";
  EXPECT_EQ(to_json(e),
            R"({"op":"f","arguments":"x=f32[2]","device":"cpu:0","generation":3,"chosen":"f/a.b",)"
            R"("strict":true,"candidates":[{"id":"f/a.b","verdict":"chosen","code":"",)"
            R"("reason":"priority 50","priority":50,"score":62.5,"transforms":"widen",)"
            R"("hint":null}],"depends_on":["H"],)"
            R"("independent":["rows"],"note":"n"})");
}

TEST(Json, holds_a_plugin_that_was_refused) {
  const std::vector<PluginInfo> plugins = {{.path = "/p/x.so",
                                            .name = "x",
                                            .loaded = false,
                                            .code = "plugin.init",
                                            .reason = "no \"key\"",
                                            .backends = {},
                                            .implementations = {}}};
  EXPECT_EQ(to_json(plugins),
            R"({"plugins":[{"path":"/p/x.so","name":"x","loaded":false,"code":"plugin.init",)"
            R"("reason":"no \"key\"","backends":[],"implementations":[],"found_in":"",)"
            R"("version":"","vendor":"","digest":"","signer":"","warnings":[]}]})");
}

TEST(Json, holds_settings_and_empty_lists) {
  EXPECT_EQ(to_json(std::vector<SettingInfo>{{"strict", "false", "built-in"}}),
            R"({"settings":[{"key":"strict","value":"false","origin":"built-in"}]})");
  EXPECT_EQ(to_json(std::vector<OperatorInfo>{}), R"({"operators":[]})");
}

}  // namespace
}  // namespace opmux
