// Times what compile() does before it asks the disk cache: choosing a plan and writing the source, for documented
// configurations in three arithmetics. Prints the rows of the table in docs/performance.md.
//
//   build/release/bench/plan_times [CONFIGURATION or SPEC]...
//
// Times are those of the core that did the work (medians of 15 in one process), so that other programs disturb them
// little.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/error.h"
#include "tools/documented.h"
#include "tools/stopwatch.h"

namespace {

using jitconv::ConvSpec;

constexpr int kRepeats = 15;

struct Arithmetic {
  const char* name;
  jitconv::DataType dtype;
  jitconv::MathMode math;
};

constexpr Arithmetic kArithmetics[] = {
    {"tf32", jitconv::DataType::f32, jitconv::MathMode::tf32},
    {"bf16", jitconv::DataType::bf16, jitconv::MathMode::fp32},
    {"ieee", jitconv::DataType::f32, jitconv::MathMode::ieee},
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Milliseconds of a core, per arithmetic.
struct Row {
  std::vector<std::string> families;
  std::vector<double> plan_ms, source_ms;
};

void time_one(const ConvSpec& spec, Row& row) {
  const jitconv::Target target = jitconv::parse_target("sm_90a");
  std::vector<double> plan_ms, source_ms;
  jitconv::codegen::ConvPlan plan;
  for (int i = 0; i < kRepeats; ++i) {
    const jitconv::tools::CpuStopwatch planning;
    plan = jitconv::codegen::make_plan(spec, target);
    plan_ms.push_back(planning.ms());
    const jitconv::tools::CpuStopwatch writing;
    jitconv::codegen::generate(plan);
    source_ms.push_back(writing.ms());
  }
  row.families.emplace_back(jitconv::codegen::to_string(plan.family()));
  row.plan_ms.push_back(median(plan_ms));
  row.source_ms.push_back(median(source_ms));
}

/// `argument` is a documented configuration's name or the text of a spec.
Row times_of(const std::string& argument) {
  const auto* found = jitconv::tools::find_documented(argument);
  ConvSpec spec = found != nullptr ? found->spec : jitconv::parse_spec(argument);
  Row row;
  for (const Arithmetic& arithmetic : kArithmetics) {
    spec.dtype = arithmetic.dtype;
    spec.math = arithmetic.math;
    time_one(spec, row);
  }
  return row;
}

void print(const std::string& name, const Row& row) {
  fmt::print("| {} |", name);
  for (std::size_t i = 0; i < row.families.size(); ++i) {
    fmt::print(" {} | {:.2f} | {:.2f} |", row.families[i], row.plan_ms[i], row.source_ms[i]);
  }
  fmt::print("\n");
}

/// One column of `rows` in ascending order.
std::vector<double> column(const std::vector<Row>& rows, std::vector<double> Row::*times, std::size_t arithmetic) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back((row.*times)[arithmetic]);
  std::sort(values.begin(), values.end());
  return values;
}

void print_summary(const std::vector<Row>& rows) {
  Row middle, longest;
  for (std::size_t i = 0; i < std::size(kArithmetics); ++i) {
    const std::vector<double> plan_ms = column(rows, &Row::plan_ms, i), source_ms = column(rows, &Row::source_ms, i);
    for (Row* row : {&middle, &longest}) row->families.emplace_back();
    middle.plan_ms.push_back(median(plan_ms));
    middle.source_ms.push_back(median(source_ms));
    longest.plan_ms.push_back(plan_ms.back());
    longest.source_ms.push_back(source_ms.back());
  }
  print(fmt::format("median of {}", rows.size()), middle);
  print("longest", longest);
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) {
    names = {"A", "B", "C", "D", "KB_L1_50", "KB_L1_67", "KB_L1_76", "KB_L1_82", "KB_L1_85", "KB_L1_86_pw", "KB_L1_87"};
  }
  std::string head = "| |", rule = "|---|";
  for (const Arithmetic& arithmetic : kArithmetics) {
    head += fmt::format(" {} family | plan ms | source ms |", arithmetic.name);
    rule += "---|---|---|";
  }
  fmt::print("{}\n{}\n", head, rule);
  std::vector<Row> rows;
  for (const std::string& name : names) {
    rows.push_back(times_of(name));
    print(name, rows.back());
  }
  print_summary(rows);
  return 0;
} catch (const jitconv::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
