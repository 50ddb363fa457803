// The groups that --help prints; only for the .cpp files that define options, because it shows LLVM's types.
#pragma once

#include <llvm/Support/CommandLine.h>

namespace jitconv::tools {

llvm::cl::OptionCategory& spec_category();
llvm::cl::OptionCategory& tool_category();

}  // namespace jitconv::tools
