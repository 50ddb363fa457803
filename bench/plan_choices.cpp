// plan_choices: the plan that the cost model chooses for every convolution of the documented configurations and of
// lists of shapes, in all types, math modes, layouts and operations. Compares two versions of the cost model: diff its
// output.
//
//   build/release/bench/plan_choices [LIST.csv]... >before.tsv
//
// Prints one line for each convolution: where it is from, target, spec, family, modelled picoseconds and plan. Without
// lists, those of tests/shapes. Compiles nothing.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "codegen/plan.h"
#include "jitconv/error.h"
#include "support/shape_lists.h"
#include "tools/documented.h"

namespace {

using jitconv::ConvSpec;
using jitconv::DataType;
using jitconv::Layout;
using jitconv::MathMode;
using jitconv::Operation;

struct Job {
  std::string name;
  ConvSpec spec;
  const char* arch;
};

struct Arithmetic {
  DataType dtype;
  MathMode math;
};

constexpr Arithmetic kArithmetics[] = {{DataType::f32, MathMode::ieee},
                                       {DataType::f32, MathMode::fp32},
                                       {DataType::f32, MathMode::tf32},
                                       {DataType::bf16, MathMode::fp32},
                                       {DataType::bf16, MathMode::ieee}};

/// In every arithmetic, layout and operation for sm_90a; those of FMA for sm_80, too.
void add_jobs(std::vector<Job>& jobs, const std::string& name, ConvSpec spec) {
  for (const Operation operation : {Operation::forward, Operation::data_gradient, Operation::weight_gradient})
    for (const Layout layout : {Layout::nchw, Layout::nhwc})
      for (const auto& [dtype, math] : kArithmetics) {
        spec.operation = operation;
        spec.input_layout = spec.output_layout = layout;
        spec.dtype = dtype;
        spec.math = math;
        jobs.push_back({name, spec, "sm_90a"});
        if (math == MathMode::ieee) jobs.push_back({name, spec, "sm_80"});
      }
}

std::string on_one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) text.replace(at, 1, "; ");
  return text;
}

std::string line_of(const Job& job) try {
  const jitconv::codegen::ConvPlan plan = jitconv::codegen::make_plan(job.spec, jitconv::parse_target(job.arch));
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", job.name, job.arch, to_string(job.spec),
                     jitconv::codegen::to_string(plan.family()), plan.cost,
                     on_one_line(jitconv::codegen::to_string(plan)));
} catch (const jitconv::Error& error) {
  return fmt::format("{}\t{}\t{}\t-\t0\t{}\n", job.name, job.arch, to_string(job.spec), on_one_line(error.what()));
}

std::vector<Job> all_jobs(const std::vector<std::string>& lists) {
  std::vector<Job> jobs;
  std::vector<jitconv::test::ShapeRow> rows;
  if (lists.empty()) {
    for (const auto& one : jitconv::tools::documented_configurations()) add_jobs(jobs, one.name, one.spec);
    rows = jitconv::test::all_shapes(JITCONV_SHAPES);
  }
  for (const std::string& list : lists)
    std::ranges::move(jitconv::test::read_shape_list(list), std::back_inserter(rows));
  for (const jitconv::test::ShapeRow& row : rows) add_jobs(jobs, fmt::format("{}:{}", row.list, row.line), row.spec);
  return jobs;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<Job> jobs = all_jobs({argv + 1, argv + argc});
  std::vector<std::string> lines(jobs.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned worker = 0; worker < std::max(1u, std::thread::hardware_concurrency()); ++worker)
    workers.emplace_back([&] {
      for (std::size_t i = next++; i < jobs.size(); i = next++) lines[i] = line_of(jobs[i]);
    });
  workers.clear();  // joins
  for (const std::string& line : lines) fmt::print("{}", line);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "plan_choices: {}\n", error.what());
  return 2;
}
