#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <opmux/opmux.hpp>

/// A small world as plain data: drawn by the generator, evaluated by the model, registered in a
/// runtime.
namespace opmux::property {

/// One argument as a caller passes it. A tensor that is not present, or the tag none, is absent.
struct Value {
  ArgTag tag = ArgTag::none;
  TensorView tensor = {};
  int64_t number = 0;
  double real = 0;
  std::string text = {};
  std::vector<int64_t> list = {};
};

struct Arg {
  enum class Type { tensor, integer, boolean, enumeration, floating, string, list };
  std::string name;
  Type type = Type::tensor;
  bool output = false, optional = false, leading = false, any_shape = false;
  std::string dtype_variable = {};
  std::vector<std::string> dims = {};  ///< names, or numbers
  std::vector<std::string> words = {};
  std::optional<Value> default_value = {};
};

/// `left compare factor * right`, or `left compare factor` without right; "%" requires a multiple.
struct Where {
  std::string left, compare;
  int64_t factor = 1;
  std::string right = {};
};

struct Schema {
  std::string name;
  std::vector<Arg> args;
  std::vector<Where> where;
};

/// Refuses if the value of its fact modulo `modulo` is `rest`; throws if it is broken.
struct Verifier {
  std::optional<std::vector<FactRef>> reads;
  FactRef asks;
  int64_t modulo = 2, rest = 0;
  bool breaks = false;
};

struct Backend {
  std::string name;
  Kind kind = Kind::vendor;
  std::string vendor;
  bool available = true, enabled = true;
};

struct Candidate {
  std::string id;
  size_t backend = 0;
  int priority = -1;
  std::vector<Hint> hints;
  uint32_t flags = 0;
  Caps caps;
  size_t known_args = 0;
  std::optional<Verifier> verifier;
  bool prepares = false;  ///< has a plan function
  std::optional<std::vector<FactRef>> plan_reads;
  bool registered = true;
};

struct World {
  Schema schema;
  std::vector<Backend> backends;
  std::vector<Candidate> candidates;
  Policy environment, code;
};

/// Arguments and their surroundings. Scopes: outermost first.
struct Call {
  std::vector<Value> given;
  Ambient ambient = {};
  uint32_t tag = 0;
  std::vector<Policy> scopes = {};
};

std::string joined(const std::vector<std::string>& words, const char* separator = ", ");

/// Texts: of a schema as define() takes it, of everything else for descriptions of failures.
std::string text_of(const Schema& schema, size_t arg_count);
std::string text_of(const Policy& policy);
std::string text_of(const Caps& caps);
std::string text_of(const World& world);
std::string text_of(const Call& call);

}  // namespace opmux::property
