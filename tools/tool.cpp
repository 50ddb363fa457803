// Exit codes, error lines, --version and command lines of the three programs.
#include "tools/tool.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>

#include <exception>

#include "jitconv/kernel.h"
#include "runtime/nvrtc.h"
#include "tools/build_info.h"
#include "tools/options.h"

namespace jitconv::tools {
namespace {

/// Control characters are spelled out: what a message quotes may come from anywhere and must not reach the terminal.
std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::string line;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "; ";
    } else if (code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", code);
    } else {
      line += c;
    }
  }
  return line;
}

int fail(const char* program, ExitCode code, const std::string& message) {
  write_error(fmt::format("{}: {}\n", program, one_line(message)));
  return code;
}

}  // namespace

llvm::cl::OptionCategory& spec_category() {
  static llvm::cl::OptionCategory category("Convolution", "What to compute, in PyTorch's terms");
  return category;
}

llvm::cl::OptionCategory& tool_category() {
  static llvm::cl::OptionCategory category("Program", "What to do with it");
  return category;
}

ExitCode exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_spec:
    case ErrorCode::unsupported:
      return kUnsupported;
    case ErrorCode::compile_failed:
    case ErrorCode::compiler_missing:
      return kCompile;
    case ErrorCode::no_driver:
    case ErrorCode::no_device:
      return kNoDevice;
    case ErrorCode::invalid_argument:
    case ErrorCode::cuda:
    case ErrorCode::internal:
    case ErrorCode::kernel_fault:
      return kCheckFailed;
  }
  return kCheckFailed;
}

int run_tool(const char* program, const std::function<int()>& body) {
  prepare_standard_streams();
  try {
    return body();
  } catch (const UsageError& error) {
    return fail(program, kUsage, fmt::format("{} (see {} --help)", error.what(), program));
  } catch (const ToolError& error) {
    return fail(program, error.code(), error.what());
  } catch (const SpecError& error) {
    // The message names the field already in most cases; the prefix makes it certain.
    const std::string message = error.what();
    const bool named = message.find(error.field()) != std::string::npos;
    return fail(program, exit_code(error.code()), named ? message : error.field() + ": " + message);
  } catch (const CompileError& error) {
    fail(program, exit_code(error.code()), error.what());
    if (!error.log().empty()) write_error(error.log() + "\n");
    return exit_code(error.code());
  } catch (const Error& error) {
    return fail(program, exit_code(error.code()), error.what());
  } catch (const std::exception& error) {
    return fail(program, kCheckFailed, error.what());
  }
}

std::string version_text() {
  const std::string_view commit = kBuildCommit;
  std::string text = fmt::format("jitconv {}{}\n", version(), commit.empty() ? "" : fmt::format(" ({})", commit));
  text += fmt::format("fmt {}.{}.{}, LLVM {}\n", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
                      LLVM_VERSION_STRING);
  try {
    const runtime::CompilerIdentity& compiler = runtime::find_compiler();
    text += fmt::format("NVRTC {} ({})\n", compiler.version, compiler.path);
  } catch (const CompileError&) {
    text += "NVRTC not found; set JITCONV_NVRTC_PATH or CUDA_HOME\n";
  }
  return text;
}

void parse_command_line(int argc, const char* const* argv, const char* overview) {
  llvm::cl::HideUnrelatedOptions({&spec_category(), &tool_category()});
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream& out) { out << version_text(); });
  std::string text;
  llvm::raw_string_ostream errors(text);
  CapturedStderr captured;
  if (llvm::cl::ParseCommandLineOptions(argc, argv, overview, &errors)) return;
  errors.flush();
  text += captured.finish();
  // LLVM starts each line with the program's name and ends the first with a hint that run_tool() gives too.
  const std::string prefix = std::string(argv[0]).substr(std::string(argv[0]).find_last_of('/') + 1) + ": ";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  if (const std::size_t hint = text.find("  Try: "); hint != std::string::npos) {
    text.erase(hint, text.find('\n', hint) - hint);
  }
  throw UsageError(one_line(text));
}

}  // namespace jitconv::tools
