// jitconv-dump: shows one stage of the way from a spec to a kernel. Touches no GPU; the stages up to the source need no
// NVRTC either.
#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/kernel.h"
#include "runtime/backend.h"
#include "runtime/compile.h"
#include "runtime/nvrtc.h"
#include "tools/disassemble.h"
#include "tools/harness.h"
#include "tools/json.h"
#include "tools/options.h"
#include "tools/priced.h"
#include "tools/spec_options.h"
#include "tools/tool.h"
#include "tools/torch_extension.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

enum class Stage { spec, plan, source, key, ptx, sass, resources, json, candidates, explain, harness, torch_extension };

constexpr const char* kOverview =
    "jitconv-dump: what jitconv makes of a convolution\n\n"
    "  jitconv-dump --config=NAME --emit=source\n"
    "  jitconv-dump --input=8,32,512,512 --weight=64,32,5,9 --padding=2,4 --dilation=2,3 --bias --emit=sass\n";

constexpr const char* kExitStatus =
    "\nEXIT STATUS:\n\n"
    "  0  ok\n"
    "  1  the output cannot be written\n"
    "  2  the command line cannot be read\n"
    "  3  the convolution cannot be computed\n"
    "  4  compilation failed, or NVRTC or the disassembler is missing\n";

struct Pipeline {
  ConvSpec spec;
  Target target;
  CompileOptions options;
  codegen::ConvPlan plan;
  codegen::KernelSource source;

  Pipeline(const ConvSpec& s, const Target& t, const CompileOptions& o)
      : spec(s), target(t), options(o), plan(codegen::make_plan(s, t)), source(codegen::generate(plan)) {}

  void require_outputs(const char* stage) const {
    if (!source.entries.empty()) return;
    throw ToolError(kUnsupported,
                    fmt::format("--emit={}: the convolution has no outputs, so there is no kernel", stage));
  }
};

std::string explain_text(const codegen::ConvPlan& plan) {
  std::string text = fmt::format("family: {}\n", codegen::to_string(plan.family()));
  for (const codegen::Note& note : plan.notes) text += fmt::format("{}: {}\n", note.topic, note.text);
  return text;
}

/// The kernel that compile() would return: of another plan than the first if the compiler spoils that.
Kernel compiled(const Pipeline& pipeline, const char* stage) {
  pipeline.require_outputs(stage);
  Kernel kernel = runtime::compile_best(pipeline.plan, pipeline.options);
  if (kernel.plan() != codegen::to_string(pipeline.plan))
    write_error("jitconv-dump: the compiler rejects the plan that --emit=plan shows; this is of the next one\n");
  return kernel;
}

std::string resources_text(const Kernel& kernel) {
  std::string text;
  const std::vector<Resources> all = kernel.resources();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const codegen::KernelEntry& entry = runtime::source_of(kernel).entries[i];
    text += fmt::format("kernel: {}\nregisters: {}\nlocal_bytes: {}\nshared_bytes: {}\nthreads: {}\nblocks: {}\n",
                        entry.name, all[i].registers, all[i].local_bytes, all[i].shared_bytes, all[i].threads,
                        entry.grid[0]);
  }
  return text + fmt::format("cubin_bytes: {}\n", kernel.image().size());
}

std::string ptx_text(const Kernel& kernel, const CompileOptions& options) {
  const codegen::KernelSource& source = runtime::source_of(kernel);
  return runtime::compile_source(source.text, source.entries[0].name + ".cu",
                                 runtime::backend_for(kernel.target()).options(source, options), true)
      .ptx;
}

json::Object json_entry(const codegen::KernelEntry& entry) {
  json::Array arguments;
  for (const auto& argument : entry.arguments) {
    arguments.push_back(json::Object{{"name", argument.name}, {"type", argument.type}});
  }
  return json::Object{{"name", entry.name},
                      {"grid", json::Array{entry.grid[0], entry.grid[1], entry.grid[2]}},
                      {"threads", entry.threads},
                      {"shared_bytes", entry.shared_bytes},
                      {"packs_weights", entry.packs_weights},
                      {"starts_early", entry.starts_early},
                      {"arguments", std::move(arguments)}};
}

/// Everything that is known before compiling; null where NVRTC would have to be there.
std::string json_text(const Pipeline& pipeline) {
  const codegen::ConvPlan& plan = pipeline.plan;
  json::Array entries, options, notes, scratch;
  for (const auto& entry : pipeline.source.entries) entries.push_back(json_entry(entry));
  for (const auto& option : runtime::backend_for(pipeline.target).options(pipeline.source, pipeline.options))
    options.push_back(option);
  for (const auto& region : plan.scratch)
    scratch.push_back(json::Object{{"name", region.name}, {"bytes", region.bytes}});
  for (const auto& note : plan.notes) notes.push_back(json::Object{{"topic", note.topic}, {"text", note.text}});
  const codegen::Work work = codegen::work(plan.spec);
  json::Object object{{"spec", to_string(pipeline.spec)},
                      {"canonical_spec", to_string(plan.spec)},
                      {"arch", plan.target.arch()},
                      {"family", std::string(codegen::to_string(plan.family()))},
                      {"plan", codegen::to_string(plan)},
                      {"notes", std::move(notes)},
                      {"flop", work.flop},
                      {"bytes", work.bytes},
                      {"packed_weight_bytes", plan.packed_weight_bytes()},
                      {"scratch", std::move(scratch)},
                      {"entries", std::move(entries)},
                      {"options", std::move(options)},
                      {"source", pipeline.source.text},
                      {"generator", std::string(codegen::generator_fingerprint())},
                      {"compiler", nullptr},
                      {"key", nullptr}};
  try {
    const runtime::CompilerIdentity& compiler = runtime::find_compiler();
    object["compiler"] =
        json::Object{{"path", compiler.path}, {"version", compiler.version}, {"build_id", compiler.build_id}};
    if (!pipeline.source.entries.empty())
      object["key"] = runtime::cache_key(pipeline.source, pipeline.target, pipeline.options).hex();
  } catch (const CompileError&) {
    // Left null: this stage works without NVRTC.
  }
  return json::render(object);
}

std::string emit(Stage stage, const Pipeline& pipeline, std::size_t candidates) {
  switch (stage) {
    case Stage::spec:
      return to_string(pipeline.spec) + "\n";
    case Stage::plan:
      return codegen::to_string(pipeline.plan);
    case Stage::source:
      pipeline.require_outputs("source");
      return pipeline.source.text;
    case Stage::key:
      return compiled(pipeline, "key").cache_key() + "\n";
    case Stage::ptx:
      return ptx_text(compiled(pipeline, "ptx"), pipeline.options);
    case Stage::sass:
      return disassemble(compiled(pipeline, "sass").image());
    case Stage::resources:
      return resources_text(compiled(pipeline, "resources"));
    case Stage::json:
      return json_text(pipeline);
    case Stage::candidates:
      return json::render(candidates_json(pipeline.spec, pipeline.target, candidates));
    case Stage::explain:
      return explain_text(pipeline.plan);
    case Stage::harness:
      pipeline.require_outputs("harness");
      return harness_text(pipeline.plan, pipeline.source);
    case Stage::torch_extension:
      return torch_extension_text(pipeline.spec, pipeline.target);
  }
  return {};
}

int run(int argc, char** argv) {
  SpecOptions specs(SpecOptions::Choice::one);
  cl::opt<Stage> stage(
      "emit", cl::desc("What to print"), cl::init(Stage::source), cl::cat(tool_category()),
      cl::values(clEnumValN(Stage::spec, "spec", "The convolution, as --spec reads it"),
                 clEnumValN(Stage::plan, "plan", "Every number that was decided"),
                 clEnumValN(Stage::source, "source", "The generated CUDA (default)"),
                 clEnumValN(Stage::key, "key", "The key of the disk cache"),
                 clEnumValN(Stage::ptx, "ptx", "NVRTC's PTX"),
                 clEnumValN(Stage::sass, "sass", "Machine code, disassembled"),
                 clEnumValN(Stage::resources, "resources", "Registers, spills, shared memory"),
                 clEnumValN(Stage::json, "json", "Spec, plan, launch, source and key as JSON"),
                 clEnumValN(Stage::candidates, "candidates", "Plans that the cost model has prices for, as JSON"),
                 clEnumValN(Stage::explain, "explain", "Why this family and plan"),
                 clEnumValN(Stage::harness, "harness", "A .cu with a main that checks and times"),
                 clEnumValN(Stage::torch_extension, "torch-extension",
                            "A Python file: a torch module with gradients that needs no jitconv")));
  cl::opt<std::string> output("o", cl::desc("Write to a file instead of stdout"), cl::value_desc("file"),
                              cl::cat(tool_category()));
  cl::opt<bool> line_info("line-info", cl::desc("Compile with line numbers, for profilers"), cl::cat(tool_category()));
  cl::opt<unsigned> candidates("candidates", cl::desc("Of --emit=candidates, at most so many (48)"), cl::init(48),
                               cl::value_desc("n"), cl::cat(tool_category()));
  const cl::extrahelp exit_status(kExitStatus), environment(kEnvironmentHelp);
  parse_command_line(argc, argv, kOverview);
  if (specs.list_requested()) {
    write_output(output, SpecOptions::list_text());
    return kOk;
  }
  CompileOptions options;
  options.line_info = line_info;
  const Pipeline pipeline(specs.chosen().front().spec, specs.target().value_or(parse_target(kDefaultArch)), options);
  write_output(output, emit(stage, pipeline, candidates));
  return kOk;
}

}  // namespace
}  // namespace jitconv::tools

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("jitconv-dump", [&] { return jitconv::tools::run(argc, argv); });
}
