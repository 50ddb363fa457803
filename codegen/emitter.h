// What every kernel family prints alike: header comment, constants, parameters, epilogue. Families add their own lines
// with Lines. Pure text; every decision was made in the plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/template_text.h"

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

/// The block of constexpr integers at the top of a kernel, in named groups.
class Constants {
 public:
  Constants& group(std::string_view title);
  Constants& add(std::string_view name, std::int64_t value, std::string_view comment = {});
  const std::string& text() const { return lines_.text(); }

 private:
  Lines lines_;
};

/// Elements from one index to the next along each axis of a tensor.
struct ElementStrides {
  std::int64_t n, c, h, w;
};
ElementStrides element_strides(const TensorShape& shape, Layout layout);

/// Adds the constants that describe the convolution itself, the same names in every family; `x` is what it reads.
void add_problem_constants(Constants& constants, const ConvPlan& plan, std::string_view x = "x");

/// Exact and independent of locale: 0x1.99999ap-4f.
std::string float_literal(float value);

/// Comment of spec and plan that opens every source.
std::string banner(const ConvPlan& plan, std::string_view template_name);

/// `jitconv_fwd_f32_nchw_n8c32h512w512_k64_5x9_d2x3_direct`, ...: what a profiler shows.
std::string kernel_name(const ConvPlan& plan);

std::vector<Argument> arguments(const ConvSpec& spec);
std::string parameter_list(const std::vector<Argument>& arguments);

/// device/*.cuh texts, one after the other.
std::string device_text(const std::vector<std::string_view>& names);
/// "device/element_f32.cuh" and so on.
std::string_view element_header(DataType type);

/// Definition of activate(), empty for Activation::none.
std::string activation_function(const Epilogue& epilogue);

/// Lines that load what the epilogue needs of one output channel.
std::string channel_values(const Epilogue& epilogue, std::string_view channel);

/// Lines that turn the sum in `value` into what is stored, after channel_values(); `offset` is the element's place in
/// y.
std::string epilogue_lines(const Epilogue& epilogue, std::string_view offset);

}  // namespace jitconv::codegen
