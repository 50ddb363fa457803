// Every JITCONV_* variable the runtime reads (the cache reads its own, see cache/store.h), and the few variables of the
// system that say where NVRTC may be. Read when needed, which is never on the path of a kernel that exists already.
// Set-uid programs see none of them.
#pragma once

#include <string>

namespace jitconv::runtime {

/// The variable's value, empty if it is unset or the program runs with raised privileges.
std::string environment(const char* name);

/// JITCONV_NVRTC_PATH: the NVRTC library to use, or the directory that holds it.
std::string nvrtc_path_from_environment();

/// JITCONV_NO_COMPILE: anything but empty or 0 makes a miss of the disk cache an error instead of a compilation.
bool compilation_forbidden();

/// JITCONV_DUMP_DIR: where sources and images are written for reading; empty for nowhere.
std::string dump_directory();

/// JITCONV_MAX_KERNELS: how many kernels stay in memory before those that nobody holds are dropped.
std::string kernel_limit_from_environment();

/// JITCONV_TUNE: 1, saved, or 0 or empty for none.
std::string tuning_from_environment();

/// JITCONV_LOG: off, error, warn, info or debug.
std::string log_level_from_environment();

/// JITCONV_LOG_FILE: the file that log lines are appended to; empty for stderr.
std::string log_file_from_environment();

}  // namespace jitconv::runtime
