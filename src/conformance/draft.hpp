#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "conformance/case.hpp"
#include "conformance/layout.hpp"
#include "conformance/random.hpp"
#include "conformance/values.hpp"

namespace opmux::conformance {

/// A case under construction. The constructor draws sizes, dtypes, presence and values from the
/// schema; the operator's shaper then sets properties that the schema does not express.
class Draft {
 public:
  Draft(std::string op, const std::vector<ArgumentInfo>& infos, uint64_t seed, uint64_t number);

  Random& random() { return random_; }
  const std::vector<CaseArgument>& arguments() const { return case_.arguments; }

  // Before make_tensors():
  /// A named dimension; draws its size on first use. A shaper may set any dimension and must set
  /// those that the schema ties to others.
  int64_t& dim(const std::string& name);
  /// Sets a named dimension to draw() if it has no size yet.
  template <class Draw>
  void dim(const std::string& name, Draw&& draw) {
    if (!dims_.contains(name)) dims_[name] = draw();
  }
  std::vector<int64_t>& leading() { return case_.leading; }
  /// A random size between 1 and `most`; prefers 1 and sizes near powers of two.
  int64_t size(int64_t most);
  /// Like size(), but occasionally 0.
  int64_t size_or_none(int64_t most) { return random_.chance(1) ? 0 : size(most); }
  /// The number of elements that a tensor of this case should not exceed.
  int64_t budget() const { return budget_; }
  DType dtype(const std::string& argument) { return case_.argument(argument).tensor.dtype; }
  void dtype(const std::string& argument, DType dtype) {
    case_.argument(argument).tensor.dtype = dtype;
  }
  /// Sets the shape of an argument for which the schema allows any shape.
  void shape(const std::string& argument, std::vector<int64_t> shape);
  void specials(Specials specials) { specials_ = specials; }
  void layouts(Layouts layouts) { layouts_ = layouts; }

  // At any time:
  void present(const std::string& argument, bool present) {
    case_.argument(argument).present = present;
  }
  bool has(const std::string& argument) const { return case_.has(argument); }
  void set(const std::string& argument, double value);
  void set_integer(const std::string& argument, int64_t value);
  /// Declares that the data violate a rule of the operator.
  void make_invalid() { case_.invalid = true; }

  // Gives tensors their shapes, layouts and values; tensor() and finish() are used after it.
  void make_tensors();
  CaseTensor& tensor(const std::string& argument) { return case_.argument(argument).tensor; }
  Case finish();

 private:
  void draw_arguments();
  void draw_dtypes();
  void draw_scalar(CaseArgument& argument);
  void fit_leading();
  std::vector<int64_t> shape_of(const ArgumentInfo& info);

  Case case_;
  Random random_;
  int64_t budget_;
  std::map<std::string, int64_t> dims_;
  Specials specials_ = Specials::none;
  Layouts layouts_;
};

}  // namespace opmux::conformance
