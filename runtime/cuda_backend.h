// The backend of GPUs: NVRTC makes cubins, the CUDA Driver API runs them. All state is nvrtc.h's and driver.h's.
#pragma once

#include "runtime/backend.h"

namespace jitconv::runtime {

/// Nothing is opened before it is needed: format(), compiler() and options() work without a driver.
const Backend& cuda_backend();

}  // namespace jitconv::runtime
