// A libnvrtc.so.13 that compiles nothing: the image is a digest of source and options, so equal inputs give equal
// images. FAKE_NVRTC_RESULT=n makes every compilation fail with code n, FAKE_NVRTC_MS=n makes it take n milliseconds,
// FAKE_NVRTC_TOGETHER=n makes it fail unless n are running at some time. FAKE_NVRTC_OLD=text makes a copy of the
// library whose path contains the text say that it is NVRTC 11.8. Like the real one's, its exit handlers do not get
// along with a compilation in flight.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace {

struct Program {
  std::string source, name, log, cubin, ptx;
};

int number_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::atoi(value);
}

int give_size(const std::string& text, std::size_t* size, std::size_t extra) {
  *size = text.size() + extra;
  return 0;
}

/// Whether `wanted` compilations meet here within a minute.
bool meets_others(int wanted) {
  static std::mutex mutex;
  static std::condition_variable changed;
  static int arrived = 0;
  std::unique_lock lock(mutex);
  ++arrived;
  changed.notify_all();
  return changed.wait_for(lock, std::chrono::minutes(1), [&] { return arrived >= wanted; });
}

std::atomic<int> in_flight{0};

/// Aborts at exit while a thread compiles; in a child that has no such thread, waits for it for ever.
struct ExitHandler {
  const pid_t process = getpid();
  ~ExitHandler() {
    while (in_flight != 0) {
      if (getpid() == process) std::abort();
      pause();
    }
  }
} exit_handler;

/// The real one's first compilation registers exit handlers of its own.
void register_another_exit_handler() { static const ExitHandler another; }

bool is_old() {
  Dl_info self;
  const char* old = std::getenv("FAKE_NVRTC_OLD");
  return old != nullptr && dladdr(&in_flight, &self) != 0 && std::strstr(self.dli_fname, old) != nullptr;
}

int compile(Program& program, int count, const char* const* options) {
  register_another_exit_handler();
  if (program.name == "nothing.cu") return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(number_from("FAKE_NVRTC_MS")));
  if (const int wanted = number_from("FAKE_NVRTC_TOGETHER"); wanted != 0 && !meets_others(wanted)) return 7;
  if (const int result = number_from("FAKE_NVRTC_RESULT"); result != 0) {
    program.log = program.name + "(1): error: as the test asked\n";
    return result;
  }
  std::string all = program.source;
  for (int i = 0; i < count; ++i) all.append("\n").append(options[i]);
  program.cubin = "fake cubin " + std::to_string(std::hash<std::string>()(all));
  program.ptx = "fake ptx";
  const std::string kernel = program.name.substr(0, program.name.rfind(".cu"));
  program.log = "ptxas info    : Compiling entry function '" + kernel +
                "' for 'sm_90a'\nptxas info    : Function properties for " + kernel +
                "\n    24 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
                "ptxas info    : Used 55 registers, used 1 barriers, 2048 bytes smem\n";
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = is_old() ? 11 : 13;
  *minor = is_old() ? 8 : 0;
  return 0;
}

const char* nvrtcGetErrorString(int result) {
  return result == 6   ? "NVRTC_ERROR_COMPILATION"
         : result == 7 ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"
                       : "NVRTC_ERROR";
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}

int nvrtcGetSupportedArchs(int* architectures) {
  const int known[] = {80, 90, 100};
  std::memcpy(architectures, known, sizeof(known));
  return 0;
}

int nvrtcCreateProgram(void** program, const char* source, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, name, {}, {}, {}};
  return 0;
}

int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}

int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  ++in_flight;
  const int result = compile(*static_cast<Program*>(handle), count, options);
  --in_flight;
  return result;
}

int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  return give_size(static_cast<Program*>(program)->log, size, 1);
}
int nvrtcGetProgramLog(void* program, char* log) {
  std::strcpy(log, static_cast<Program*>(program)->log.c_str());
  return 0;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return give_size(static_cast<Program*>(program)->cubin, size, 0);
}
int nvrtcGetCUBIN(void* program, char* cubin) {
  const std::string& bytes = static_cast<Program*>(program)->cubin;
  std::memcpy(cubin, bytes.data(), bytes.size());
  return 0;
}
int nvrtcGetPTXSize(void* program, std::size_t* size) {
  return give_size(static_cast<Program*>(program)->ptx, size, 1);
}
int nvrtcGetPTX(void* program, char* ptx) {
  std::strcpy(ptx, static_cast<Program*>(program)->ptx.c_str());
  return 0;
}

}  // extern "C"
