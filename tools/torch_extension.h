// One Python file around a convolution's kernels and those of its gradients: a torch.nn.Module with autograd that runs
// without jitconv.
#pragma once

#include <string>

#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv::tools {

/// The file. Throws SpecError (unsupported) of a spec that is no forward convolution, has a residual or no outputs.
std::string torch_extension_text(const ConvSpec& spec, const Target& target);

/// torch_extension.py.in, embedded by the build.
extern const char* const kTorchExtension;

}  // namespace jitconv::tools
