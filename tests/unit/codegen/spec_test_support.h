// Shared by the tests of specs: one well-known spec, and catching a SpecError.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "jitconv/error.h"
#include "jitconv/spec.h"

namespace jitconv::test {

/// Case C of the documented configurations.
inline ConvSpec headline_c() {
  ConvSpec spec;
  spec.input = {8, 32, 512, 512};
  spec.weight = {64, 32, 5, 9};
  spec.padding = {2, 4};
  spec.dilation = {2, 3};
  return spec;
}

struct Thrown {
  std::string field, message;
  ErrorCode code{};
};

/// The SpecError that `body` throws; fails the test if it throws none.
inline Thrown thrown_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const SpecError& error) {
    return {error.field(), error.what(), error.code()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace jitconv::test
