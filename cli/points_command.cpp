#include <charconv>
#include <cstdlib>
#include <iostream>
#include <memory>

#include <opmux/points.hpp>
#include <opmux/typed.hpp>

#include "base/text.hpp"
#include "cli/argument_text.hpp"
#include "cli/command.hpp"
#include "cli/migrate/migration.hpp"

namespace opmux::cli {
namespace {

struct PointsCommand {
  std::string point;
  std::vector<std::string> arguments;
  bool json = false;
};

/// The words of the parameters in a signature "name(Device, int) -> int".
std::vector<std::string> parameters_of(std::string_view signature) {
  const size_t open = signature.find('('), close = signature.find(')');
  if (open == signature.npos || close == signature.npos) return {};
  return migrate::split(signature.substr(open + 1, close - open - 1), ',');
}

/// A word of the command line as a value of a point's type; nullopt if it is none.
std::optional<opmux_arg> value_of(const std::string& type, const std::string& word) {
  if (type == "str") return detail::point_argument(word);
  if (type == "bool" && (word == "true" || word == "false")) {
    return detail::point_argument(word == "true");
  }
  if (type == "Device") {
    const std::optional<Device> device = parse_device(word);
    if (device) return detail::point_argument(*device);
  }
  const char* const end = word.data() + word.size();
  int64_t number = 0;
  if (type == "int" && std::from_chars(word.data(), end, number).ptr == end) {
    return detail::point_argument(number);
  }
  char* stop = nullptr;
  const double real = std::strtod(word.c_str(), &stop);
  if (type == "float" && !word.empty() && stop == end) return detail::point_argument(real);
  return std::nullopt;
}

int list(const PointsCommand& command) {
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  const std::vector<PointInfo> points = list_points(*runtime);
  if (command.json) {
    std::cout << to_json(points) << "\n";
    return kFine;
  }
  for (const PointInfo& point : points) std::cout << point.to_string();
  if (points.empty()) std::cout << "no plugin answers a specialization point\n";
  return kFine;
}

int explain(const PointsCommand& command) {
  std::optional<Runtime> runtime = make_runtime();
  if (!runtime) return kWrongUse;
  Result<PointInfo> point = explain_point(*runtime, command.point);
  if (!point) return wrong_use(point.error().message());
  const std::vector<std::string> types = parameters_of(point->signature);
  if (!command.arguments.empty()) {
    if (command.arguments.size() != types.size()) {
      return wrong_use(base::concat(point->signature, " takes ", types.size(), " arguments"));
    }
    std::vector<opmux_arg> values;
    for (size_t i = 0; i < types.size(); ++i) {
      const std::optional<opmux_arg> value = value_of(types[i], command.arguments[i]);
      if (!value) {
        return wrong_use(base::concat("'", command.arguments[i], "' is not a value of type ",
                                      types[i], " for ", point->signature));
      }
      values.push_back(*value);
    }
    point =
        explain_point(*runtime, command.point, values.data(), static_cast<uint32_t>(values.size()));
    if (!point) return wrong_use(point.error().message());
  }
  std::cout << (command.json ? to_json(*point) + "\n" : point->to_string());
  return kFine;
}

}  // namespace

void add_points(CLI::App& app, Action& action) {
  auto options = std::make_shared<PointsCommand>();
  CLI::App* group =
      app.add_subcommand("points", "Show specialization points and the backends that answer them");
  group->require_subcommand(1);
  CLI::App* all = group->add_subcommand("list", "List the points that plugins answer");
  all->add_flag("--json", options->json, "print JSON as described in docs/schemas/points.json");
  all->callback([options, &action] { action = [options] { return list(*options); }; });
  CLI::App* one = group->add_subcommand(
      "explain", "Show which backends are asked, in which order, and what they answer");
  one->add_option("POINT", options->point, "a name, or a signature \"gemm.tile_n(Device) -> int\"")
      ->required();
  one->add_option("ARG", options->arguments, "the arguments of the question, such as cpu:0 or 64");
  one->add_flag("--json", options->json, "print JSON as described in docs/schemas/points.json");
  one->callback([options, &action] { action = [options] { return explain(*options); }; });
}

}  // namespace opmux::cli
