// The runtime's environment variables: plain look-ups, no state. See env.h.
#include "runtime/env.h"

#include <cstdlib>

namespace jitconv::runtime {

std::string environment(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string nvrtc_path_from_environment() { return environment("JITCONV_NVRTC_PATH"); }

bool compilation_forbidden() {
  const std::string value = environment("JITCONV_NO_COMPILE");
  return !value.empty() && value != "0";
}

std::string dump_directory() { return environment("JITCONV_DUMP_DIR"); }

std::string kernel_limit_from_environment() { return environment("JITCONV_MAX_KERNELS"); }

std::string tuning_from_environment() { return environment("JITCONV_TUNE"); }

std::string log_level_from_environment() { return environment("JITCONV_LOG"); }

std::string log_file_from_environment() { return environment("JITCONV_LOG_FILE"); }

}  // namespace jitconv::runtime
