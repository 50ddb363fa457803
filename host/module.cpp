// See module.h. The bytes go to a memory file, never to a file that somebody else could change between the check of its
// digest and its execution. The file is closed once it is loaded and mapped, so a module holds no descriptor.
#include "host/module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "cache/files.h"
#include "cache/shared_object.h"
#include "cache/write_all.h"
#include "host/process.h"
#include "host/translation.h"
#include "jitconv/error.h"

namespace jitconv::host {
namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw CudaError(ErrorCode::cuda, Module::kInvalidImage, "load",
                  "the image is no module of host execution: " + reason);
}

[[noreturn]] void fail(const char* call, int error) {
  throw CudaError(ErrorCode::cuda, 0, call, fmt::format("{} failed: {}", call, std::generic_category().message(error)));
}

/// The image, if the loader can map it.
const std::string& checked(const std::string& image) {
  if (const std::string defect = cache::defect_of_shared_object(image); !defect.empty()) refuse(defect);
  return image;
}

/// Bytes as a file without a name.
cache::FileDescriptor memory_file(std::string_view bytes) {
  cache::FileDescriptor file(::memfd_create("jitconv-module", MFD_CLOEXEC));
  if (file.get() < 0) fail("memfd_create", errno);
  if (const int error = cache::write_all(file.get(), bytes); error != 0) fail("write", error);
  return file;
}

/// A path to the descriptor that differs from the paths of all loaded modules. For a path that it has loaded before,
/// the loader returns that library again, and the system uses descriptor numbers again. So the path contains the file's
/// inode number as well, in parts that lead nowhere else: "/." for each bit that is 1 and "/" for each that is 0.
std::string distinct_path(const cache::FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("fstat", errno);
  std::string path = "/proc/self/fd";
  for (std::uint64_t left = status.st_ino; left != 0; left >>= 1) path += (left & 1) != 0 ? "/." : "/";
  return fmt::format("{}/{}", path, file.get());
}

/// The bytes of a file, as long as this lives and whatever becomes of its descriptor.
class Mapping {
 public:
  Mapping(const cache::FileDescriptor& file, std::size_t bytes)
      : bytes_(bytes), first_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0)) {
    if (first_ == MAP_FAILED) fail("mmap", errno);
  }
  ~Mapping() { ::munmap(first_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(first_), bytes_}; }

 private:
  const std::size_t bytes_;
  void* const first_;
};

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

struct Range {
  std::uintptr_t first = 0, last = 0;
  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= first && at < last;
  }
};

/// Where the loader put the library: from its first to past its last segment.
Range mapped_range(const link_map& library) {
  struct Search {
    std::uintptr_t base;
    Range range;
  } search{library.l_addr, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (info->dlpi_addr != wanted.base) return 0;
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD) {
            wanted.range.last =
                std::max<std::uintptr_t>(wanted.range.last, wanted.base + segment.p_vaddr + segment.p_memsz);
          }
        }
        wanted.range.first = wanted.base;
        return 1;
      },
      &search);
  return search.range;
}

/// addr2line -i prints the innermost inlined function first: device functions of models, then the generated text, whose
/// innermost line is the one to name. Lines read "file:12" or "file:12 (discriminator 3)".
int line_in(const std::string& output) {
  std::size_t at = 0;
  while (at < output.size()) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string line = output.substr(at, end - at);
    const std::size_t number = line.find(".cu:");
    if (number != std::string::npos) return std::atoi(line.c_str() + number + 4);
    at = end + 1;
  }
  return 0;
}

/// 0 if the program cannot tell, or there is no descriptor to show it the image by.
int line_at(const std::string& addr2line, std::string_view image, std::uintptr_t offset) try {
  const cache::FileDescriptor file = memory_file(image);
  const Outcome outcome = run({.arguments = {addr2line, "-i", "-e", "/proc/self/fd/3", fmt::format("{:#x}", offset)},
                               .directory = {},
                               .inherited = file.get(),
                               .limit = std::chrono::seconds(10)});
  return outcome.succeeded() ? line_in(outcome.output) : 0;
} catch (const CudaError&) {
  return 0;
}

std::string find_addr2line() {
  for (const char* path : {"/usr/bin/addr2line", "/usr/local/bin/addr2line", "/usr/bin/llvm-addr2line"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

}  // namespace

struct Module::State {
  explicit State(const std::string& bytes) : State(bytes, memory_file(checked(bytes))) {}

  State(const std::string& bytes, const cache::FileDescriptor& file) : image(file, bytes.size()) {
    library.reset(::dlopen(distinct_path(file).c_str(), RTLD_NOW | RTLD_LOCAL));
    if (library == nullptr) refuse(::dlerror());
    table = static_cast<const jitconv_host_module*>(::dlsym(library.get(), "jitconv_host_module_table"));
    if (table == nullptr) refuse("it has no jitconv_host_module_table");
    if (table->abi != JITCONV_HOST_ABI)
      refuse(fmt::format("its interface is {}, this is {}", table->abi, JITCONV_HOST_ABI));
    link_map* map = nullptr;
    if (::dlinfo(library.get(), RTLD_DI_LINKMAP, &map) != 0) refuse(::dlerror());
    base = map->l_addr;
    range = mapped_range(*map);
    const auto shared_first = reinterpret_cast<std::uintptr_t>(table->shared_memory);
    shared = {shared_first, shared_first + kSharedBytes};
  }

  const Mapping image;  ///< all of it: debug information is not loaded
  std::unique_ptr<void, Close> library;
  const jitconv_host_module* table = nullptr;
  std::uintptr_t base = 0;
  Range range, shared;
  std::mutex mutex;
  std::unordered_map<const void*, int> lines;
};

Module::Module(const std::string& image) : state_(std::make_unique<State>(image)) {}
Module::~Module() = default;

Module::Entry Module::entry(const std::string& name) const {
  return reinterpret_cast<Entry>(::dlsym(state_->library.get(), wrapper_name(name).c_str()));
}

void Module::connect(const jitconv_host_api* api) const { *state_->table->api = api; }
jitconv_host_thread** Module::current_thread() const { return state_->table->thread; }
std::uint64_t* Module::fma_count() const {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(state_->table->fma_count);
}
void* Module::shared_memory() const { return state_->table->shared_memory; }
bool Module::counts() const { return state_->table->counts != 0; }
bool Module::contains(const void* address) const {
  return state_->range.holds(address) && !state_->shared.holds(address);
}

int Module::line_of(const void* pc) const {
  if (!state_->range.holds(pc)) return 0;
  const std::lock_guard lock(state_->mutex);
  if (const auto known = state_->lines.find(pc); known != state_->lines.end()) return known->second;
  int line = 0;
  if (const std::string program = find_addr2line(); !program.empty()) {
    // The call is before its return address.
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(pc) - state_->base - 1;
    line = line_at(program, state_->image.bytes(), offset);
  }
  return state_->lines.emplace(pc, line).first->second;
}

}  // namespace jitconv::host
