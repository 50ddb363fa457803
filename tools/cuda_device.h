// The text of device_kernels.cu, embedded by the build; compiled by CudaDevice at its first use and by a unit test.
#pragma once

namespace jitconv::tools {

extern const char* const kDeviceKernels;

}  // namespace jitconv::tools
