// kernel_digests: digests of generated text and machine code for many convolutions, to compare two versions of the
// generator (compare_digests.py). Neither names of kernels nor comments count. No GPU.
//
//   kernel_digests --code >before.tsv
//   kernel_digests --code --only=plans.tsv >before.tsv     plans of which a line has convolution, architecture,
//   candidate
//
// Prints one line for each kernel: what was planned, a digest of the source's tokens, and, with --code, a digest of the
// kernel's machine code, and its registers.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cache/digest.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "fuzz/edge_specs.h"
#include "runtime/nvrtc.h"
#include "runtime/ptxas_log.h"
#include "support/shape_lists.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

struct Options {
  bool code = false;              ///< compile, too
  std::size_t shapes = SIZE_MAX;  ///< rows of tests/shapes
  std::size_t random = 256;       ///< convolutions at the edges
  std::size_t candidates = 1;     ///< plans of a convolution for sm_90a: the choice and others, evenly spread
  std::string only;               ///< a file; empty: all plans
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
};

struct Job {
  std::string name;
  ConvSpec spec;
  std::string arch;
  std::size_t candidate = 0;  ///< of `candidates`
};

constexpr const char* kArchitectures[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120a"};

/// By turns the arithmetics, types, layouts and epilogues that choose other kernels.
ConvSpec variant(ConvSpec spec, std::size_t i) {
  switch (i % 6) {
    case 0:
      spec.math = MathMode::tf32;
      break;
    case 1:
      spec.dtype = DataType::bf16;
      spec.epilogue.bias = true;
      break;
    case 2:
      spec.math = MathMode::tf32;
      spec.input_layout = spec.output_layout = Layout::nhwc;
      spec.epilogue.bias = true;
      spec.epilogue.activation = Activation::relu;
      break;
    case 3:
      spec.dtype = DataType::f16;
      spec.input_layout = spec.output_layout = Layout::nhwc;
      spec.epilogue.residual = true;
      break;
    case 4:
      spec.math = MathMode::tf32;
      spec.output_layout = Layout::nhwc;
      spec.epilogue.activation = Activation::gelu_erf;
      break;
    default:
      spec.epilogue.bias = spec.epilogue.residual = true;
      break;
  }
  return spec;
}

void add_jobs(std::vector<Job>& jobs, const std::string& name, const ConvSpec& spec, const std::string& arch,
              const Options& options) {
  const std::size_t candidates = arch == "sm_90a" ? options.candidates : 1;
  for (std::size_t i = 0; i < candidates; ++i) jobs.push_back({name, spec, arch, i});
}

std::string key_of(const Job& job) { return fmt::format("{}\t{}\t{}", job.name, job.arch, job.candidate); }

/// The first three columns of the file's lines.
std::set<std::string> keys_in(const std::string& path) {
  std::ifstream lines(path);
  if (!lines) throw SpecError(path, "cannot be read");
  std::set<std::string> keys;
  for (std::string line; std::getline(lines, line);) {
    std::size_t end = 0;
    for (int i = 0; i < 3 && end != std::string::npos; ++i) end = line.find('\t', end + (i > 0 ? 1 : 0));
    keys.insert(line.substr(0, end));
  }
  return keys;
}

std::vector<Job> all_jobs(const Options& options) {
  std::vector<Job> jobs;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    for (const char* arch : kArchitectures) add_jobs(jobs, one.name, one.spec, arch, options);
    for (std::size_t i = 0; i < 5; ++i)
      add_jobs(jobs, fmt::format("{}/{}", one.name, i), variant(one.spec, i), "sm_90a", options);
  }
  const std::vector<ShapeRow> rows = forward_shapes(JITCONV_TEST_DATA "/shapes");
  const std::size_t step = std::max<std::size_t>(1, rows.size() / std::min(options.shapes, rows.size()));
  for (std::size_t i = 0; i < rows.size(); i += step) {
    const std::string name = fmt::format("{}:{}", rows[i].list, rows[i].line);
    add_jobs(jobs, name, variant(rows[i].spec, i / step), "sm_90a", options);
    if (i / step % 8 == 0) add_jobs(jobs, name, rows[i].spec, kArchitectures[i / step / 8 % 6], options);
  }
  for (std::size_t seed = 0; seed < options.random; ++seed)
    add_jobs(jobs, fmt::format("edge:{}", seed), edge_spec(seed, 2'000'000), "sm_90a", options);
  if (!options.only.empty())
    std::erase_if(jobs, [keys = keys_in(options.only)](const Job& job) { return !keys.contains(key_of(job)); });
  return jobs;
}

codegen::ConvPlan plan_of(const Job& job, std::size_t candidates) {
  const Target target = parse_target(job.arch);
  if (job.candidate == 0) return codegen::make_plan(job.spec, target);
  const std::vector<codegen::ConvPlan> all = codegen::enumerate_plans(job.spec, target, SIZE_MAX);
  return all[job.candidate * (all.size() - 1) / candidates];
}

std::string short_digest(std::string_view bytes) { return cache::to_hex(cache::sha256(bytes)).substr(0, 16); }

/// The text without its `//` comments.
std::string without_comments(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    result.append(line.substr(0, line.find("//"))).push_back('\n');
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return result;
}

/// What the compiler reads of a source, but for the names of its kernels: tokens, with a space only where one is
/// needed.
std::string tokens_of(const codegen::KernelSource& source) {
  std::string text = without_comments(source.text);
  // Names of passes begin with the convolution's: the longest first.
  std::vector<std::string> names;
  for (const codegen::KernelEntry& entry : source.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& name : names)
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, name.size(), "kernel");
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::string tokens;
  bool space = false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      space = true;
      continue;
    }
    if (space && !tokens.empty() && in_word(tokens.back()) && in_word(c)) tokens += ' ';
    space = false;
    tokens += c;
  }
  return tokens;
}

template <typename T>
T read(std::string_view image, std::uint64_t at) {
  T value{};
  if (at + sizeof(T) > image.size()) throw InternalError("a cubin that ends early");
  std::memcpy(&value, image.data() + at, sizeof(T));
  return value;
}

struct Section {
  std::string name;
  std::string_view bytes;
};

/// The sections of a cubin, which is a 64-bit ELF file; only what the digests need.
std::vector<Section> sections_of(std::string_view image) {
  const auto table = read<std::uint64_t>(image, 0x28);
  const auto size = read<std::uint16_t>(image, 0x3a), count = read<std::uint16_t>(image, 0x3c),
             names = read<std::uint16_t>(image, 0x3e);
  const auto names_at = read<std::uint64_t>(image, table + std::uint64_t{names} * size + 0x18);
  std::vector<Section> sections;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t header = table + i * size;
    const auto name = read<std::uint32_t>(image, header), type = read<std::uint32_t>(image, header + 4);
    constexpr std::uint32_t kNoBits = 8;
    if (type == kNoBits) continue;
    const auto at = read<std::uint64_t>(image, header + 0x18), bytes = read<std::uint64_t>(image, header + 0x20);
    sections.push_back({image.data() + names_at + name, image.substr(at, bytes)});
  }
  return sections;
}

/// One line for each kernel of the plan.
std::string lines_of(const Job& job, const Options& options) {
  const codegen::ConvPlan plan = plan_of(job, options.candidates);
  const codegen::KernelSource source = codegen::generate(plan);
  const std::string what = key_of(job);
  const std::string text = short_digest(tokens_of(source));
  std::vector<Section> sections;
  std::vector<Resources> resources;
  runtime::CompiledImage image;
  if (options.code && !source.entries.empty()) {
    image = runtime::compile_source(source.text, "kernel.cu", source.options);
    sections = sections_of(image.cubin);
    resources = runtime::resources_from_log(image.log, source.entries);
  }
  std::string lines;
  for (std::size_t i = 0; i < source.entries.size(); ++i) {
    const codegen::KernelEntry& entry = source.entries[i];
    std::string code = "-";
    for (const Section& section : sections)
      if (section.name == ".text." + entry.name) code = short_digest(section.bytes);
    lines += fmt::format("{}\t{}\t{}x{}+{}\t{}\t{}\t{}\n", what, i, entry.grid[0], entry.threads, entry.shared_bytes,
                         text, code, options.code ? resources[i].registers : 0);
  }
  if (source.entries.empty()) lines += what + "\tno kernel\n";
  return lines;
}

std::optional<std::size_t> number_of(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name)) return std::nullopt;
  return std::stoul(std::string(argument.substr(name.size())));
}

Options options_from(const std::vector<std::string>& arguments) {
  Options options;
  for (const std::string& argument : arguments) {
    if (argument == "--code")
      options.code = true;
    else if (const auto shapes = number_of(argument, "--shapes="))
      options.shapes = *shapes;
    else if (const auto random = number_of(argument, "--random="))
      options.random = *random;
    else if (const auto candidates = number_of(argument, "--candidates="))
      options.candidates = *candidates;
    else if (argument.starts_with("--only="))
      options.only = argument.substr(7);
    else if (const auto jobs = number_of(argument, "--jobs="))
      options.jobs = static_cast<unsigned>(*jobs);
    else
      throw SpecError(argument, "is no option: --code --shapes=N --random=N --candidates=N --only=FILE --jobs=N");
  }
  return options;
}

int run(const Options& options) {
  const std::vector<Job> jobs = all_jobs(options);
  std::vector<std::string> lines(jobs.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < options.jobs; ++worker)
    workers.emplace_back([&] {
      for (std::size_t i = next++; i < jobs.size(); i = next++) {
        try {
          lines[i] = lines_of(jobs[i], options);
        } catch (const Error& error) {
          failed = true;
          lines[i] = fmt::format("{}\t{}\t{}\t{}\n", jobs[i].name, jobs[i].arch, jobs[i].candidate, error.what());
        }
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (const std::string& some : lines) fmt::print("{}", some);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace jitconv::test

int main(int argc, char** argv) try {
  return jitconv::test::run(jitconv::test::options_from({argv + 1, argv + argc}));
} catch (const jitconv::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
