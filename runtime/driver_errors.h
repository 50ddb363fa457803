// Turns a CUresult into a CudaError: which ErrorCode it is, and what a user can do about it.
#pragma once

#include <string>

#include "jitconv/error.h"
#include "runtime/cuda_abi.h"

namespace jitconv::runtime {

/// `call` is the entry point's name; `context` says what jitconv was doing, if that is not obvious from the call.
[[noreturn]] void throw_driver_error(const cuda::Api& api, cuda::Result result, const char* call,
                                     const std::string& context = {});

/// "CUDA_ERROR_INVALID_IMAGE (200)".
std::string result_name(const cuda::Api& api, cuda::Result result);

}  // namespace jitconv::runtime
