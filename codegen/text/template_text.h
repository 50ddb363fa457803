// Text of templates/ and the substitution of its @holes@. Strict both ways: a hole without a value and a value without
// a hole are InternalErrors. No conditionals, no loops: those live in the emitters.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace jitconv::codegen {

struct EmbeddedFile {
  std::string_view name;  ///< relative to templates/: "direct/kernel.cu.in", "device/vector.cuh"
  std::string_view text;
};

/// Every file of templates/, put into the library by the build.
const std::vector<EmbeddedFile>& embedded_files();

/// Text of one embedded file; InternalError if there is none of that name.
std::string_view embedded_text(std::string_view name);

using Holes = std::map<std::string, std::string, std::less<>>;

/// Replaces every @name@. A hole alone on its line takes any number of lines, each indented as the hole is, or none,
/// which removes the line; inside a line it takes text without line breaks.
std::string fill_template(std::string_view text, const Holes& holes);

}  // namespace jitconv::codegen
