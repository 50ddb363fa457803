// Finds and runs nvdisasm or cuobjdump.
#include "tools/disassemble.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/FileUtilities.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/Program.h>

#include <cstdlib>
#include <vector>
#if LLVM_VERSION_MAJOR >= 16
#include <optional>
#endif

#include "jitconv/error.h"
#include "runtime/nvrtc.h"
#include "tools/tool.h"

namespace jitconv::tools {
namespace {

namespace fs = llvm::sys::fs;

// LLVM replaced its own Optional by the standard one in release 16.
#if LLVM_VERSION_MAJOR >= 16
using Redirect = std::optional<llvm::StringRef>;
#else
using Redirect = llvm::Optional<llvm::StringRef>;
#endif

struct TemporaryFile {
  llvm::SmallString<128> path;
  llvm::FileRemover remover;

  explicit TemporaryFile(const char* suffix) {
    if (const std::error_code error = fs::createTemporaryFile("jitconv", suffix, path)) {
      throw ToolError(kCheckFailed, fmt::format("cannot make a temporary file: {}", error.message()));
    }
    remover.setFile(path);
  }
  std::string name() const { return std::string(path.str()); }
};

/// Directories to look in besides PATH, in order.
std::vector<std::string> directories() {
  std::vector<std::string> found;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') {
      found.push_back(std::string(value) + "/bin");
    }
  }
  found.push_back("/usr/local/cuda/bin");
  try {
    // Python wheels put lib/ and bin/ side by side.
    const llvm::StringRef library = llvm::sys::path::parent_path(runtime::find_compiler().path);
    found.push_back(llvm::sys::path::parent_path(library).str() + "/bin");
  } catch (const CompileError&) {
  }
  return found;
}

std::string find_program(const char* name) {
  if (auto path = llvm::sys::findProgramByName(name)) return *path;
  std::vector<std::string> names = directories();
  const std::vector<llvm::StringRef> paths(names.begin(), names.end());
  if (auto path = llvm::sys::findProgramByName(name, paths)) return *path;
  return {};
}

std::string read_file(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) throw ToolError(kCheckFailed, fmt::format("cannot read {}: {}", path, buffer.getError().message()));
  return (*buffer)->getBuffer().str();
}

}  // namespace

std::string disassemble(const std::string& cubin) {
  std::string program = find_program("nvdisasm");
  std::vector<std::string> arguments = {"nvdisasm", "--print-code"};
  if (program.empty()) {
    program = find_program("cuobjdump");
    arguments = {"cuobjdump", "--dump-sass"};
  }
  if (program.empty()) {
    throw ToolError(kCompile,
                    "--emit=sass needs nvdisasm or cuobjdump from a CUDA toolkit: neither is on PATH, in CUDA_HOME or "
                    "beside NVRTC");
  }
  const TemporaryFile image("cubin"), output("sass"), errors("txt");
  write_output(image.name(), cubin);
  arguments.push_back(image.name());

  const std::vector<llvm::StringRef> views(arguments.begin(), arguments.end());
  const std::string output_name = output.name(), errors_name = errors.name();
  const Redirect redirects[] = {llvm::StringRef("/dev/null"), llvm::StringRef(output_name),
                                llvm::StringRef(errors_name)};
  std::string message;
  const int status = llvm::sys::ExecuteAndWait(program, views, {}, redirects, 120, 0, &message);
  if (status != 0) {
    throw ToolError(kCompile, fmt::format("{} failed ({}): {}{}", program, status, message, read_file(errors_name)));
  }
  return read_file(output_name);
}

}  // namespace jitconv::tools
