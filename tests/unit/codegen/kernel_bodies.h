// Questions to generated kernels, for tests of what their text must say and where, and of the workspace they share.
#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/source.h"

namespace jitconv::test {

inline std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

/// The body of one of the kernels.
inline std::string body_of(const codegen::KernelSource& source, std::size_t entry) {
  const std::size_t begin = source.text.find("\n" + source.entries[entry].name + "(");
  return source.text.substr(begin, source.text.find("\n}\n", begin) - begin);
}

/// Whether a kernel waits for the one before, and does before it reads.
inline bool waits_before(const std::string& body, const char* reads) {
  const std::size_t wait = body.find("wait_for_previous_kernel();"), read = body.find(reads, body.find(") {\n"));
  return wait != std::string::npos && read != std::string::npos && wait < read;
}

/// Bytes of a region of the workspace, 0 if there is none of that name.
inline std::int64_t scratch_bytes(const std::vector<codegen::Scratch>& scratch, std::string_view name) {
  for (const codegen::Scratch& region : scratch)
    if (region.name == name) return region.bytes;
  return 0;
}

/// A tensor's name, or its region's.
inline std::string name_of(codegen::Tensor tensor, const std::vector<codegen::Scratch>& scratch) {
  static constexpr const char* kGiven[] = {"x", "w", "bias", "residual", "y", "dy", "dx", "dw", "db", "saved"};
  static_assert(std::size(kGiven) == static_cast<std::size_t>(codegen::Tensor::scratch));
  const auto number = static_cast<std::size_t>(tensor);
  return codegen::is_scratch(tensor) ? scratch.at(number - std::size(kGiven)).name : kGiven[number];
}

}  // namespace jitconv::test
