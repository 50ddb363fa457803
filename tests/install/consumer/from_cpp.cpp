// Uses the installed C++ headers and catches one of the library's exceptions across its boundary.
#include <iostream>
#include <jitconv/jitconv.hpp>

int main() {
  jitconv::ConvSpec spec;
  spec.input = {8, 32, 512, 512};
  spec.weight = {64, 32, 5, 9};
  spec.padding = {2, 4};
  spec.dilation = {2, 3};
  if (jitconv::output_shape(spec) != jitconv::TensorShape{8, 64, 508, 496}) return 1;
  if (jitconv::parse_target("sm_90a").arch() != "sm_90a") return 2;
  spec.weight.r = 500;
  try {
    jitconv::validate(spec);
    return 3;
  } catch (const jitconv::SpecError& error) {
    std::cout << error.field() << ": " << error.what() << '\n';
    return error.code() == jitconv::ErrorCode::invalid_spec ? 0 : 4;
  }
}
