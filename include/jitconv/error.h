// The exceptions of jitconv. The class says whose fault an error is: the caller's spec or arguments (SpecError), the
// generated source or its compiler (CompileError, KernelFault), the driver or device (CudaError), or jitconv itself
// (InternalError). docs/troubleshooting.md explains the messages.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "jitconv/export.h"

namespace jitconv {

/// What went wrong. The numbers equal those of jitconv_status in the C interface.
enum class ErrorCode : std::int32_t {
  invalid_spec = 1,      ///< a field of ConvSpec breaks a rule
  invalid_argument = 2,  ///< a launch or API argument breaks a rule
  unsupported = 3,       ///< a valid request that this build or target cannot serve
  compile_failed = 4,    ///< the compiler rejected the generated source, or JITCONV_NO_COMPILE forbids compiling
  compiler_missing = 5,  ///< NVRTC, its builtins library or, for the host, a C++ compiler is missing
  no_driver = 6,         ///< libcuda cannot be loaded or is a stub
  no_device = 7,         ///< the driver reports no usable device
  cuda = 8,              ///< a driver call failed
  internal = 9,          ///< a bug in jitconv
  kernel_fault = 10,     ///< host execution found that the kernel breaks a rule
};

/// The base of all exceptions below. what() is a message for people.
class JITCONV_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// What went wrong, for programs.
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// The request is wrong. what() names the field, its value and the rule that it breaks.
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
  /// The compiler's log; empty if it was not called.
  const std::string& log() const noexcept { return log_; }
  /// The source with line numbers, to which the log refers; empty if nothing was compiled.
  const std::string& numbered_source() const noexcept { return numbered_source_; }
  /// The compiler's options, separated by spaces; empty if nothing was compiled.
  const std::string& options() const noexcept { return options_; }

 private:
  std::string log_, numbered_source_, options_;
};

/// A call of the CUDA driver failed, or there is no driver or device. After some errors, such as an illegal address,
/// the context is unusable and every further call fails.
class JITCONV_API CudaError : public Error {
 public:
  CudaError(ErrorCode code, int result, std::string call, const std::string& message)
      : Error(code, message), result_(result), call_(std::move(call)) {}
  /// The CUresult, or 0 if no call was made.
  int result() const noexcept { return result_; }
  /// The driver's function that failed, "cuLaunchKernel"; or the step that did, "dlopen", "launch".
  const std::string& call() const noexcept { return call_; }

 private:
  int result_;
  std::string call_;
};

/// Host execution found that the kernel breaks a rule of CUDA: an access outside its buffers, a data race, a barrier
/// that not all threads reach. what() lists the findings, each with kernel, line of the generated source, block and
/// thread. It is a bug in jitconv, unless the caller's buffers are smaller than the spec says. The contents of y are
/// then undefined.
class JITCONV_API KernelFault : public Error {
 public:
  explicit KernelFault(const std::string& message) : Error(ErrorCode::kernel_fault, message) {}
};

/// An invariant inside jitconv is broken. Please report the message together with the spec.
class JITCONV_API InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ErrorCode::internal, message) {}
};

}  // namespace jitconv
