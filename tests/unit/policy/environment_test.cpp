#include "policy/rules/environment.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace opmux::policy {
namespace {

using Words = std::vector<std::string>;

Environment parsed(const std::vector<Variable>& variables) {
  return parse_environment(variables).value();
}

Status error(const std::string& name, const std::string& value) {
  return parse_environment({{name, value}}).error();
}

bool mentions(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

TEST(Environment, an_empty_environment_sets_nothing) {
  const Environment environment = parsed({});
  EXPECT_TRUE(environment.policy.empty());
  EXPECT_TRUE(environment.seen.empty());
  EXPECT_FALSE(environment.disable);
}

TEST(Environment, variables_that_kubernetes_sets_for_a_service_are_ignored) {
  const std::vector<Variable> set{{"OPMUX_PORT", "tcp://10.0.171.239:8080"},
                                  {"OPMUX_PORT_53_UDP", "udp://10.0.171.239:53"},
                                  {"OPMUX_PORT_8080_TCP", "tcp://[fd00::1]:8080"},
                                  {"OPMUX_PORT_8080_TCP_ADDR", "10.0.171.239"},
                                  {"OPMUX_PORT_8080_TCP_PORT", "8080"},
                                  {"OPMUX_PORT_8080_TCP_PROTO", "tcp"},
                                  {"OPMUX_SERVICE_HOST", "10.0.171.239"},
                                  {"OPMUX_SERVICE_PORT", "8080"},
                                  {"OPMUX_SERVICE_PORT_GRPC_WEB", "8081"},
                                  {"OPMUX_AGENT_SERVICE_HOST", "fd00::2"},
                                  {"OPMUX_AGENT_PORT_9_SCTP", "sctp://10.1.2.3:9"},
                                  {"OPMUX_SERVICE_PORT_80_TCP_ADDR", "10.1.2.3"}};
  const Environment environment = parsed(set);
  EXPECT_EQ(environment.of_services.size(), set.size());
  EXPECT_TRUE(environment.seen.empty());
}

TEST(Environment, variables_that_only_resemble_those_of_a_service_are_unknown) {
  for (const Variable& variable : std::vector<Variable>{{"OPMUX_PORT", "8080"},
                                                        {"OPMUX_PORT", "tcp://somewhere:80"},
                                                        {"OPMUX_PORT", "http://10.0.0.1:80"},
                                                        {"OPMUX_PORT", "tcp://"},
                                                        {"OPMUX_PORTS", "tcp://10.0.0.1:80"},
                                                        {"OPMUX_PORT_80_HTTP", "tcp://10.0.0.1:80"},
                                                        {"OPMUX_PORT_80_TCP_NAME", "tcp"},
                                                        {"OPMUX_PORT_99999_TCP_PORT", "80"},
                                                        {"OPMUX_SERVICE", "10.0.0.1"},
                                                        {"OPMUX_SERVICE_HOST", "localhost"},
                                                        {"OPMUX_SERVICE_HOSTS", "10.0.0.1"},
                                                        {"OPMUX_SERVICE_PORT", "0"},
                                                        {"OPMUX_SERVICE_PORTS", "80"}}) {
    EXPECT_EQ(error(variable.name, variable.value).reason(), "environment.unknown")
        << variable.name << "=" << variable.value;
  }
}

TEST(Environment, reads_every_variable) {
  const Environment e = parsed({{"OPMUX_CONFIG", "/etc/policy.yaml"},
                                {"OPMUX_MODE", "hot_reload"},
                                {"OPMUX_PREFER", "vendor:acme,default"},
                                {"OPMUX_STRICT", "1"},
                                {"OPMUX_PER_OP", "norm=vendor|reference;softmax=default"},
                                {"OPMUX_ALLOW_VENDORS", "acme,intel"},
                                {"OPMUX_DENY_VENDORS", "khronos"},
                                {"OPMUX_PLUGIN_PATH", "/a:/b c"},
                                {"OPMUX_PYTHON_PLUGINS", "one,two.three"},
                                {"OPMUX_PLATFORM", "acme"},
                                {"OPMUX_STATE_DIR", "/state"},
                                {"OPMUX_CRASH_JOURNAL", "with_handler"},
                                {"OPMUX_RECORD", "inputs:/rec"},
                                {"OPMUX_LOG", "info"},
                                {"OPMUX_DISABLE", "on"},
                                {"OPMUX_NUM_THREADS", "12"},
                                {"OPMUX_BACKEND_ONEDNN", "off"}});
  EXPECT_EQ(e.config, "/etc/policy.yaml");
  EXPECT_EQ(e.mode, "hot_reload");
  EXPECT_EQ(e.policy.prefer, (Words{"vendor:acme", "default"}));
  EXPECT_EQ(e.policy.strict, true);
  EXPECT_EQ(e.policy.per_op.at("norm"), (Words{"vendor", "reference"}));
  EXPECT_EQ(e.policy.per_op.at("softmax"), (Words{"default"}));
  EXPECT_EQ(e.policy.allow_vendors, (Words{"acme", "intel"}));
  EXPECT_EQ(e.policy.deny_vendors, (Words{"khronos"}));
  EXPECT_EQ(e.plugin_path, (Words{"/a", "/b c"}));
  EXPECT_EQ(e.python_plugins, (Words{"one", "two.three"}));
  EXPECT_EQ(e.platform, "acme");
  EXPECT_EQ(e.state_dir, "/state");
  EXPECT_EQ(e.crash_journal, "with_handler");
  EXPECT_EQ(e.record, "/rec");
  EXPECT_TRUE(e.record_inputs);
  EXPECT_EQ(e.log, "info");
  EXPECT_TRUE(e.disable);
  EXPECT_EQ(e.num_threads, 12);
  EXPECT_EQ(e.backends.at("onednn"), false);
  EXPECT_EQ(e.seen.size(), 17u);
  EXPECT_TRUE(validate(e.policy).ok());
}

TEST(Environment, a_folder_to_record_to_may_ask_for_inputs) {
  EXPECT_EQ(parsed({{"OPMUX_RECORD", "/a:b"}}).record, "/a:b");
  EXPECT_FALSE(parsed({{"OPMUX_RECORD", "./rec"}}).record_inputs);
  const auto refused = [](const char* value) {
    const auto read = parse_environment({{"OPMUX_RECORD", value}});
    return read ? "" : read.error().to_string();
  };
  EXPECT_EQ(
      refused("input:/rec"),
      "invalid_argument (environment.value): OPMUX_RECORD='input:/rec': 'input' before the "
      "colon is not known; did you mean 'inputs'?; allowed values are FOLDER and inputs:FOLDER");
  EXPECT_EQ(refused("inputs:"),
            "invalid_argument (environment.value): OPMUX_RECORD='inputs:': the folder is missing");
}

TEST(Environment, empty_is_the_same_as_unset) {
  const Environment environment =
      parsed({{"OPMUX_STRICT", ""}, {"OPMUX_PREFER", ""}, {"OPMUX_MODE", ""}, {"OPMUX_X", ""}});
  EXPECT_TRUE(environment.policy.empty());
  EXPECT_TRUE(environment.seen.empty());
}

TEST(Environment, booleans_know_six_words) {
  for (const char* yes : {"1", "true", "on"}) {
    EXPECT_EQ(parsed({{"OPMUX_STRICT", yes}}).policy.strict, true) << yes;
  }
  for (const char* no : {"0", "false", "off"}) {
    EXPECT_EQ(parsed({{"OPMUX_STRICT", no}}).policy.strict, false) << no;
  }
}

TEST(Environment, false_does_not_enable) {
  EXPECT_FALSE(parsed({{"OPMUX_DISABLE", "false"}}).disable);
  EXPECT_FALSE(parsed({{"OPMUX_BACKEND_SIMD", "false"}}).backends.at("simd"));
}

TEST(Environment, other_words_for_booleans_fail_and_name_what_is_allowed) {
  for (const char* word : {"yes", "TRUE", "2", " 1", "enabled"}) {
    const Status status = error("OPMUX_DISABLE", word);
    EXPECT_EQ(status.reason(), "environment.value") << word;
    EXPECT_TRUE(mentions(status, "OPMUX_DISABLE='" + std::string(word) + "'"));
    EXPECT_TRUE(mentions(status, "0, 1, true, false, on, off"));
  }
}

TEST(Environment, a_number_of_threads_is_a_whole_number_from_1_to_1024) {
  EXPECT_EQ(parsed({{"OPMUX_NUM_THREADS", "1024"}}).num_threads, 1024);
  for (const char* word : {"0", "-1", "1025", "two", "2x", " 2", "99999999999999999999"}) {
    const Status status = error("OPMUX_NUM_THREADS", word);
    EXPECT_EQ(status.reason(), "environment.value") << word;
    EXPECT_TRUE(mentions(status, "1 to 1024")) << word;
  }
}

TEST(Environment, an_unknown_name_fails_and_suggests_the_nearest) {
  const Status status = error("OPMUX_PREFERS", "vendor");
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), "environment.unknown");
  EXPECT_TRUE(mentions(status, "did you mean 'OPMUX_PREFER'?")) << status.to_string();
}

TEST(Environment, names_of_other_programs_are_ignored) {
  EXPECT_TRUE(parse_environment({{"PATH", "/bin"}, {"OPMUXER", "1"}}).has_value());
}

TEST(Environment, a_backend_is_named_in_capitals) {
  EXPECT_TRUE(parsed({{"OPMUX_BACKEND_MY_CHIP2", "1"}}).backends.at("my_chip2"));
  EXPECT_EQ(error("OPMUX_BACKEND_simd", "1").reason(), "environment.unknown");
  EXPECT_EQ(error("OPMUX_BACKEND_", "1").reason(), "environment.unknown");
  EXPECT_EQ(error("OPMUX_BACKEND_2X", "1").reason(), "environment.unknown");
  EXPECT_EQ(error("OPMUX_BACKEND_SIMD", "maybe").reason(), "environment.value");
}

TEST(Environment, an_unknown_token_fails_and_names_the_nearest) {
  const Status status = error("OPMUX_PREFER", "default,vendr");
  EXPECT_EQ(status.reason(), "environment.value");
  EXPECT_TRUE(mentions(status, "OPMUX_PREFER='default,vendr'")) << status.to_string();
  EXPECT_TRUE(mentions(status, "did you mean 'vendor'?")) << status.to_string();
}

TEST(Environment, lists_may_have_spaces_around_commas_but_no_gaps) {
  EXPECT_EQ(parsed({{"OPMUX_PREFER", "vendor , default"}}).policy.prefer,
            (Words{"vendor", "default"}));
  EXPECT_FALSE(error("OPMUX_PREFER", "vendor,,default").ok());
  EXPECT_FALSE(error("OPMUX_ALLOW_VENDORS", "acme,").ok());
  EXPECT_FALSE(error("OPMUX_PLUGIN_PATH", "/a::/b").ok());
}

TEST(Environment, old_names_of_default_are_understood) {
  EXPECT_TRUE(parse_environment({{"OPMUX_PREFER", "flaggems"}}).has_value());
  EXPECT_TRUE(parse_environment({{"OPMUX_PER_OP", "norm=flagos|vendor"}}).has_value());
}

TEST(Environment, malformed_orders_fail) {
  for (const char* orders :
       {"norm", "norm=", "=vendor", "norm=vendor|", "norm=vendor;", "Norm=vendor",
        "norm=vendor;norm=default", "norm=vendr", "norm*=vendor"}) {
    EXPECT_EQ(error("OPMUX_PER_OP", orders).reason(), "environment.value") << orders;
  }
}

TEST(Environment, levels_of_the_log_are_a_closed_set) {
  for (const char* level : {"debug", "info", "warning", "error"}) {
    EXPECT_EQ(parsed({{"OPMUX_LOG", level}}).log, level);
  }
  const Status status = error("OPMUX_LOG", "warnings");
  EXPECT_EQ(status.reason(), "environment.value");
  EXPECT_EQ(status.message(),
            "OPMUX_LOG='warnings': allowed values are debug, info, warning, error; did you mean "
            "'warning'?");
  EXPECT_EQ(error("OPMUX_LOG", "1").message(),
            "OPMUX_LOG='1': allowed values are debug, info, warning, error");
}

TEST(Environment, modes_are_a_closed_set) {
  for (const char* mode : {"static", "dynamic", "config", "hot_reload", "auto"}) {
    EXPECT_EQ(parsed({{"OPMUX_MODE", mode}}).mode, mode);
  }
  const Status status = error("OPMUX_MODE", "hotreload");
  EXPECT_EQ(status.reason(), "environment.value");
  EXPECT_TRUE(mentions(status, "'hot_reload'")) << status.to_string();
}

TEST(Environment, vendors_are_names) {
  EXPECT_EQ(error("OPMUX_DENY_VENDORS", "vendor:acme").reason(), "environment.value");
}

TEST(Environment, takes_its_variables_from_an_environment_block) {
  const char* block[] = {"PATH=/bin", "OPMUX_STRICT=1", "OPMUX_LOG=a=b", "OPMUX_BARE", nullptr};
  const std::vector<Variable> variables = variables_of(block);
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].name, "OPMUX_LOG");
  EXPECT_EQ(variables[0].value, "a=b");
  EXPECT_EQ(variables[1].name, "OPMUX_STRICT");
  EXPECT_TRUE(variables_of(nullptr).empty());
}

TEST(Environment, raised_privileges_hide_every_variable) {
  ASSERT_EQ(setenv("OPMUX_STRICT", "1", 1), 0);
  EXPECT_EQ(process_variables(false).size(), variables_of(environ).size());
  EXPECT_FALSE(process_variables(false).empty());
  EXPECT_TRUE(process_variables(true).empty());
  unsetenv("OPMUX_STRICT");
}

}  // namespace
}  // namespace opmux::policy
