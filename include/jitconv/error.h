// Everything jitconv throws. Each class answers "whose fault is it": the caller's spec or arguments (SpecError), the
// generated source (CompileError, KernelFault), the driver or device (CudaError), or jitconv itself (InternalError).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "jitconv/export.h"

namespace jitconv {

/// The same numbers as jitconv_status in the C ABI.
enum class ErrorCode : std::int32_t {
  invalid_spec = 1,      ///< a field of ConvSpec breaks a rule
  invalid_argument = 2,  ///< a launch or API argument breaks a rule
  unsupported = 3,       ///< a valid request this build or target cannot serve
  compile_failed = 4,    ///< the compiler rejected the generated source, or JITCONV_NO_COMPILE keeps it from it
  compiler_missing = 5,  ///< NVRTC, its builtins library or, for the host, a C++ compiler is not there
  no_driver = 6,         ///< libcuda cannot be loaded or is a stub
  no_device = 7,         ///< the driver reports no usable device
  cuda = 8,              ///< a driver call failed
  internal = 9,          ///< a bug in jitconv
  kernel_fault = 10,     ///< host execution found the kernel breaking a rule
};

class JITCONV_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// The request is wrong: what() names the field, its value and the rule it breaks.
class JITCONV_API SpecError : public Error {
 public:
  SpecError(ErrorCode code, std::string field, const std::string& message)
      : Error(code, message), field_(std::move(field)) {}
  SpecError(std::string field, const std::string& message)
      : SpecError(ErrorCode::invalid_spec, std::move(field), message) {}
  /// The field or argument at fault, as spelled in the API ("padding", "x").
  const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

/// The compiler (NVRTC, or the C++ compiler for host execution) is missing or rejected the source.
class JITCONV_API CompileError : public Error {
 public:
  CompileError(ErrorCode code, const std::string& message, std::string log = {}, std::string numbered_source = {},
               std::string options = {})
      : Error(code, message),
        log_(std::move(log)),
        numbered_source_(std::move(numbered_source)),
        options_(std::move(options)) {}
  const std::string& log() const noexcept { return log_; }
  /// The source with line numbers, for reading the log; empty if nothing was compiled.
  const std::string& numbered_source() const noexcept { return numbered_source_; }
  const std::string& options() const noexcept { return options_; }

 private:
  std::string log_, numbered_source_, options_;
};

/// A driver call failed. After a sticky error (an illegal address, say) the context is unusable and every call fails.
class JITCONV_API CudaError : public Error {
 public:
  CudaError(ErrorCode code, int result, std::string call, const std::string& message)
      : Error(code, message), result_(result), call_(std::move(call)) {}
  /// The CUresult, or 0 if no call was made.
  int result() const noexcept { return result_; }
  const std::string& call() const noexcept { return call_; }

 private:
  int result_;
  std::string call_;
};

/// Host execution found the kernel breaking a rule of CUDA's: an access outside its buffers, a data race, a barrier
/// that not all threads reach. what() lists the findings, each with kernel, line of the generated source, block and
/// thread. Unless the caller's buffers are smaller than the spec says, it is a bug in jitconv; what the launch wrote is
/// not to be relied on.
class JITCONV_API KernelFault : public Error {
 public:
  explicit KernelFault(const std::string& message) : Error(ErrorCode::kernel_fault, message) {}
};

/// A broken invariant inside jitconv: please report it with the spec it prints.
class JITCONV_API InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ErrorCode::internal, message) {}
};

}  // namespace jitconv
