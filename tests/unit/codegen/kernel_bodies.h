// Questions to the text of generated kernels, for tests of what it must say and where.
#pragma once

#include <string>

#include "codegen/source.h"

namespace jitconv::test {

inline std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

/// Of one of the kernels.
inline std::string body_of(const codegen::KernelSource& source, std::size_t entry) {
  const std::size_t begin = source.text.find("\n" + source.entries[entry].name + "(");
  return source.text.substr(begin, source.text.find("\n}\n", begin) - begin);
}

/// Whether a kernel waits for the one before, and does before it reads.
inline bool waits_before(const std::string& body, const char* reads) {
  const std::size_t wait = body.find("wait_for_previous_kernel();"), read = body.find(reads, body.find(") {\n"));
  return wait != std::string::npos && read != std::string::npos && wait < read;
}

}  // namespace jitconv::test
