// What every kernel family prints alike: header comment, constants, parameters, epilogue. Families add their own lines
// with Lines. Pure text; every decision was made in the plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/text/device_text.h"
#include "codegen/text/template_text.h"

namespace jitconv::codegen {

/// Text built line by line.
class Lines {
 public:
  Lines& add(std::string_view line) {
    text_.append(line).push_back('\n');
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Lines, two columns further; directives and empty lines stay.
std::string indented(std::string_view text);

/// The block of constexpr integers at the top of a kernel, in named groups.
class Constants {
 public:
  Constants& group(std::string_view title);
  Constants& add(std::string_view name, std::int64_t value, std::string_view comment = {});
  const std::string& text() const { return lines_.text(); }

 private:
  Lines lines_;
};

/// "device/element_f32.cuh" and so on.
std::string_view element_header(DataType type);
/// The files with load_if() of one, and with operand_row(), of floats that are rounded to TF32.
std::string_view load_header(DataType type);
std::string_view operand_header(DataType type);
/// What makes 16 bytes of an operand of the elements of this array. Floats that are split later are not rounded.
std::string operand_row(const Problem& problem, std::string_view elements);
/// The file with element_pair() of a 16-bit type.
std::string_view pair_header(DataType type);

/// Definition of PairVector, `elements` 16-bit outputs that are rounded and stored two in a word.
std::string pair_vector(std::string_view elements, std::string_view comment);

/// What a family prints of one kernel: everything but the banner and device files.
struct KernelText {
  std::vector<Argument> arguments;
  std::vector<DeviceFile> files;
  std::string text;
};

/// Adds the constants that describe the convolution itself, the same names in every family; `x` is what it reads.
void add_problem_constants(Constants& constants, const Problem& problem, std::string_view x = "x");

/// The line that gives each thread of a warpgroup `wanted` registers, if the launch gave it another number. `name` is
/// the constant.
std::string move_registers(int wanted, int launched, std::string_view name);

/// Exact and independent of locale: 0x1.99999ap-4f.
std::string float_literal(float value);

/// Comment of spec and plan that opens every source.
std::string banner(const ConvPlan& plan);

/// Whether the output's elements are floats and the operands' are not: sums, or a gradient that is asked for as such.
bool stores_floats(const Problem& problem);

/// How an output is stored: the type of its elements and of vectors of them, and what makes one of `value`.
struct StoredText {
  std::string element, vector, converted;
  DeviceFile vector_file;
};
StoredText stored_text(const Problem& problem);

/// x, w, bias, residual and y of a kernel, as the problem has them. Bias and residual are of the output's type.
std::vector<Argument> arguments(const Problem& problem);
/// A parameter that is a tensor map.
Argument tensor_map(Tensor tensor, std::string name, const TensorMapShape& map);
std::string parameter_list(const std::vector<Argument>& arguments);

}  // namespace jitconv::codegen
