#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "conformance/case.hpp"

namespace opmux::conformance {

/// Pseudo-random numbers that are the same on every machine. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }
  /// An independent sequence for each seed, word (operator) and number (case).
  Random(uint64_t seed, std::string_view word, uint64_t number)
      : Random(seed * 0x9e3779b97f4a7c15u ^ number * 0xd1342543de82ef95u) {
    for (const char c : word) state_ = state_ * 0x100000001b3u ^ static_cast<unsigned char>(c);
    next();
  }

  /// splitmix64.
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// In [0, count); 0 if count is not positive.
  int64_t below(int64_t count) {
    return count <= 0 ? 0 : static_cast<int64_t>(next() % static_cast<uint64_t>(count));
  }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  /// In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  /// Approximately normal: mean 0, variance 1, magnitude below 3.5. A sum of four uniform numbers.
  double normal() { return (unit() + unit() + unit() + unit() - 2) * 1.7320508075688772; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }

 private:
  uint64_t state_;
};

/// The kinds of strides that the tensors of a case may have.
enum class Layouts { contiguous, inner_contiguous, any };

Layouts draw_layouts(Random& random);

/// Sets row-major strides without gaps.
void set_contiguous(CaseTensor& tensor);

/// Draws strides and the placement in memory. Only tensors that are not written may be broadcast
/// (stride 0).
void draw_layout(Random& random, Layouts layouts, bool written, CaseTensor& tensor);

/// Non-finite values for which an operator defines a result.
enum class Specials { none, nan, nan_and_infinity };

/// Draws values for a float tensor: mostly normally distributed, sometimes sparse, constant, tiny,
/// large, far from zero, or with a few special values.
void draw_values(Random& random, Specials specials, CaseTensor& tensor);

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
  /// Gives a dimension a size that shapers cannot change.
  void fix_dim(const std::string& name, int64_t size) { fixed_[name] = size; }
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
  /// For calls that are timed: all tensors are contiguous and keep their sizes, and values are
  /// normally distributed, because the speed of a kernel may depend on denormal or special values.
  void make_typical() {
    typical_ = true;
    specials_ = Specials::none;
    layouts_ = Layouts::contiguous;
  }

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
  /// Gives tensors their shapes only, without memory for elements.
  void make_shapes();
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
  std::map<std::string, int64_t> dims_, fixed_;
  bool typical_ = false;
  Specials specials_ = Specials::none;
  Layouts layouts_;
};

}  // namespace opmux::conformance
