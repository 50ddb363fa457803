// The text of one device file of a multiplication, as a kernel has it.
#pragma once

#include <string>
#include <string_view>

#include "codegen/text/emitter.h"

namespace jitconv::test {

/// "device/multiply_tf32.cuh" or its like, of `columns` columns.
inline std::string multiply_text(std::string_view file, int columns) {
  return codegen::device_text({{file, columns}}, "") + '\n';
}

}  // namespace jitconv::test
