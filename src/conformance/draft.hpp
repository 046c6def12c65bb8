#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "conformance/case.hpp"
#include "conformance/layout.hpp"
#include "conformance/random.hpp"
#include "conformance/values.hpp"

namespace opmux::conformance {

/// A case in the making. The schema gives sizes, dtypes, presence and values a first draw; an
/// operator's shaper then corrects what the schema cannot say.
class Draft {
 public:
  Draft(std::string op, const std::vector<ArgumentInfo>& infos, uint64_t seed, uint64_t number);

  Random& random() { return random_; }
  const std::vector<CaseArgument>& arguments() const { return case_.arguments; }

  // Before tensors have shapes.
  /// A named dimension. A shaper may set any; those that the schema ties to others it must.
  int64_t& dim(const std::string& name);
  /// Draws a named dimension that has no size yet.
  template <class Draw>
  void dim(const std::string& name, Draw&& draw) {
    if (!dims_.contains(name)) dims_[name] = draw();
  }
  std::vector<int64_t>& leading() { return case_.leading; }
  /// A size between 1 and `most`, with a taste for 1 and for the neighbours of powers of two.
  int64_t size(int64_t most);
  /// Like size(), now and then 0.
  int64_t size_or_none(int64_t most) { return random_.chance(1) ? 0 : size(most); }
  /// How many elements the tensors of this case should have at most.
  int64_t budget() const { return budget_; }
  DType dtype(const std::string& argument) { return case_.argument(argument).tensor.dtype; }
  void dtype(const std::string& argument, DType dtype) {
    case_.argument(argument).tensor.dtype = dtype;
  }
  /// The shape of an argument that the schema leaves open.
  void shape(const std::string& argument, std::vector<int64_t> shape);
  void specials(Specials specials) { specials_ = specials; }
  void layouts(Layouts layouts) { layouts_ = layouts; }

  // At any time.
  void present(const std::string& argument, bool present) {
    case_.argument(argument).present = present;
  }
  bool has(const std::string& argument) const { return case_.has(argument); }
  void set(const std::string& argument, double value);
  void set_integer(const std::string& argument, int64_t value);
  /// The data will break a rule of the operator.
  void make_invalid() { case_.invalid = true; }

  // Once tensors have shapes.
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
