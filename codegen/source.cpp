// generate(): puts the texts of a plan's kernels together and adds what a launch needs.
#include "codegen/source.h"

#include "codegen/text/device_text.h"
#include "codegen/text/emitter.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/line_wrap.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// What a profiler shows of the plan's kernels: the convolution has the convolution's name, passes add theirs.
std::string name_of(const ConvPlan& plan, const KernelPlan& kernel) {
  const std::string name = kernel_name(plan);
  return &kernel == &plan.convolution() ? name : fmt::format("{}_{}", name, to_string(kernel.family()));
}

KernelEntry entry_of(const KernelPlan& kernel, std::string name, std::vector<Argument> arguments) {
  const Launch& launch = kernel.launch;
  return {.name = std::move(name),
          .grid = {launch.blocks, 1, 1},
          .threads = launch.threads,
          .shared_bytes = launch.shared_bytes,
          .arguments = std::move(arguments),
          .packs_weights = packs_weights(kernel.family()),
          .starts_early = kernel.starts_early};
}

}  // namespace

KernelSource generate(const ConvPlan& plan) {
  KernelSource source;
  source.scratch = plan.scratch;
  if (plan.kernels.empty()) return source;
  const KernelPlan& convolution = plan.convolution();
  std::vector<DeviceFile> files, files_of_passes;
  std::string convolution_text, pass_texts;
  for (const KernelPlan& kernel : plan.kernels) {
    const std::string name = name_of(plan, kernel);
    KernelText text = functions_of(kernel.family()).emit(kernel, name);
    add_files(&kernel == &convolution ? files : files_of_passes, text.files);
    KernelEntry entry = entry_of(kernel, name, std::move(text.arguments));
    if (&kernel == &convolution) {
      convolution_text = std::move(text.text);
    } else {
      // Its constants have names of the convolution's.
      const std::string_view scope = to_string(kernel.family());
      entry.scope = fmt::format("{}::", scope);
      pass_texts += fmt::format("\nnamespace {0} {{\n\n{1}\n}}  // namespace {0}\n", scope, text.text);
    }
    source.entries.push_back(std::move(entry));
  }
  add_files(files, files_of_passes);
  const std::string kernels = convolution_text + pass_texts;
  constexpr std::size_t kColumns = 120;
  source.text = wrap_lines(fmt::format("{}\n\n{}\n\n{}", banner(plan), device_text(files, kernels), kernels), kColumns);
  // No fast-math flags: denormals, division and contraction are as IEEE and the text say.
  source.options = {fmt::format("--gpu-architecture={}", plan.target.arch()), "--std=c++17"};
  return source;
}

}  // namespace jitconv::codegen
