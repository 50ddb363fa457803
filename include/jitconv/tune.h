// tune(), which measures candidates of one convolution on the GPU at hand, for users who want the last per cent and for
// GPUs that the cost model was not fitted on. compile() does not need it.
#pragma once

#include "jitconv/export.h"
#include "jitconv/kernel.h"
#include "jitconv/spec.h"

namespace jitconv {

/// How tune() works.
struct TuneOptions {
  CompileOptions compile = {};
  int candidates = 8;  ///< at most so many are compiled and measured: the model's cheapest, the best of every family
  int launches = 15;   ///< timed launches of each candidate, after two that are not; their median counts
  bool again = false;  ///< measure even if a choice is remembered
};

/// Compiles the cost model's best candidates on all cores, measures them on the current device with random data in
/// memory of its own, and returns the kernel of the fastest, loaded. The choice is remembered in this process and, in
/// an entry beside the kernels, in the disk cache: a later call finds it there and measures nothing. It holds for one
/// spec, one Target and one version of jitconv. A candidate that cannot be compiled or measured is left out.
///
/// compile() and prepare() take remembered choices only where the environment asks for it: JITCONV_TUNE=saved. With
/// JITCONV_TUNE=1 compile() for the current device also measures what has no choice yet. Candidates add up products in
/// different orders, so results of a tuned kernel may differ from those of another in the last bits; each gives the
/// same bits on every run.
///
/// Takes the GPU for some tenths of a second, and device memory for every tensor of the convolution and for the
/// workspace. It waits for the current context, so it cannot be called while a stream is captured.
///
/// Throws SpecError and CompileError as compile(), SpecError (invalid_argument) for counts below 1, and CudaError: out
/// of memory if the tensors do not fit.
JITCONV_API Kernel tune(const ConvSpec& spec, const TuneOptions& options = {});

}  // namespace jitconv
