// See compile_all.h.
#include "nvrtc/compile_all.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <regex>
#include <thread>

#include "codegen/source.h"
#include "codegen/text/kernel_name.h"
#include "runtime/compile.h"
#include "runtime/nvrtc.h"
#include "runtime/ptxas_log.h"

namespace jitconv::test {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void compile_one(const codegen::KernelSource& source, CompileResult& result) {
  const double begin = thread_seconds();
  try {
    const runtime::CompiledImage image =
        runtime::compile_source(source.text, source.entries.front().name + ".cu", source.options);
    result.seconds = thread_seconds() - begin;
    result.cubin_bytes = static_cast<std::int64_t>(image.cubin.size());
    const std::vector<Resources> resources = runtime::resources_from_log(image.log, source.entries);
    for (std::size_t i = 0; i < resources.size(); ++i)
      if (source.entries[i].name == codegen::kernel_name(result.plan)) result.resources = resources[i];
    result.defect = runtime::defect(image.log, source.entries).value_or("");
    result.spill_bytes = spill_bytes_of(image.log);
  } catch (const CompileError& error) {
    result.error = fmt::format("{}\n{}", error.what(), error.log());
  } catch (const Error& error) {
    result.error = error.what();
  }
}

}  // namespace

std::int64_t spill_bytes_of(const std::string& log) {
  static const std::regex pattern(R"((\d+) bytes spill (?:stores|loads))");
  std::int64_t total = 0;
  for (std::sregex_iterator match(log.begin(), log.end(), pattern), end; match != end; ++match)
    total += std::stoll((*match)[1]);
  return total;
}

std::vector<CompileResult> compile_all(const std::vector<CompileJob>& jobs) {
  std::vector<CompileResult> results(jobs.size());
  std::vector<codegen::KernelSource> sources(jobs.size());
  std::map<std::string, std::size_t> first_with_text;
  std::vector<std::size_t> same_as(jobs.size()), distinct;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    results[i].name = jobs[i].name;
    results[i].plan = jobs[i].plan;
    sources[i] = codegen::generate(jobs[i].plan);
    if (sources[i].entries.empty()) continue;  // no outputs, nothing to compile
    std::string identity = sources[i].text;
    for (const std::string& option : sources[i].options) identity += '\n' + option;
    same_as[i] = first_with_text.emplace(std::move(identity), i).first->second;
    if (same_as[i] == i) distinct.push_back(i);
  }

  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < std::max(1u, std::thread::hardware_concurrency()); ++worker) {
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < distinct.size(); at = next++)
        compile_one(sources[distinct[at]], results[distinct[at]]);
    });
  }
  for (std::thread& worker : workers) worker.join();

  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (sources[i].entries.empty() || same_as[i] == i) continue;
    results[i] = results[same_as[i]];
    results[i].name = jobs[i].name;
    results[i].plan = jobs[i].plan;
    results[i].duplicate = true;
  }
  return results;
}

std::string fault_of_replacement(const CompileResult& spoiled) {
  const Kernel kernel = compile(spoiled.plan.spec, spoiled.plan.target);
  std::string fault = runtime::defect(kernel.compile_log(), runtime::source_of(kernel).entries).value_or("");
  if (kernel.explain().find("the compiler spoils") == std::string::npos) fault += " nothing says what was spoiled";
  return fault.empty() ? fault : fault + '\n' + kernel.explain();
}

std::string summary(const std::vector<CompileResult>& results) {
  std::size_t compiled = 0, distinct = 0, spilling = 0;
  double seconds = 0;
  const CompileResult *slowest = nullptr, *largest = nullptr, *fullest = nullptr;
  for (const CompileResult& result : results) {
    if (!result.error.empty() || result.cubin_bytes == 0) continue;
    ++compiled;
    if (result.spill_bytes > 0) ++spilling;
    if (!result.duplicate) ++distinct, seconds += result.seconds;
    if (slowest == nullptr || result.seconds > slowest->seconds) slowest = &result;
    if (largest == nullptr || result.cubin_bytes > largest->cubin_bytes) largest = &result;
    if (fullest == nullptr || result.resources.registers > fullest->resources.registers) fullest = &result;
  }
  if (compiled == 0) return fmt::format("0 of {} compiled", results.size());
  return fmt::format(
      "{} of {} compiled ({} distinct, {:.1f} s of processor time); slowest {:.2f} s ({}), largest {} bytes ({}), most "
      "registers {} ({}), {} spill",
      compiled, results.size(), distinct, seconds, slowest->seconds, slowest->name, largest->cubin_bytes, largest->name,
      fullest->resources.registers, fullest->name, spilling);
}

}  // namespace jitconv::test
