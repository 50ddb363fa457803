// Times what compile() does before it asks the disk cache: choosing a plan and writing the source. Prints the tables of
// docs/performance.md.
//
//   build/release/bench/plan_times [CONFIGURATION or SPEC]...      a row for each, in four arithmetics
//   build/release/bench/plan_times LIST.csv... [--above=MS]        planning of tests/shapes/*.csv and the like, with
//                                                                  every operation, arithmetic and layout; names the
//                                                                  specs that take longer
//
// Times are those of the core that did the work, in one process (medians of 15; of lists, the least of 3), so that
// other programs disturb them little.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/error.h"
#include "support/shape_lists.h"
#include "tools/documented.h"
#include "tools/stopwatch.h"

namespace {

using jitconv::ConvSpec;

constexpr int kRepeats = 15, kRepeatsOfLists = 3;

struct Arithmetic {
  const char* name;
  jitconv::DataType dtype;
  jitconv::MathMode math;
};

constexpr Arithmetic kArithmetics[] = {
    {"tf32", jitconv::DataType::f32, jitconv::MathMode::tf32},
    {"fp32", jitconv::DataType::f32, jitconv::MathMode::fp32},
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

/// Milliseconds of a core.
double plan_ms(const ConvSpec& spec, const jitconv::Target& target) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepeatsOfLists; ++i) {
    const jitconv::tools::CpuStopwatch planning;
    jitconv::codegen::make_plan(spec, target);
    least = std::min(least, planning.ms());
  }
  return least;
}

/// What the rows of lists ask for in one way; of transposed rows, which are data gradients, only that.
std::vector<ConvSpec> variants_of(const std::vector<jitconv::test::ShapeRow>& rows, jitconv::Operation operation,
                                  const Arithmetic& arithmetic, jitconv::Layout layout) {
  std::vector<ConvSpec> specs;
  for (const jitconv::test::ShapeRow& row : rows) {
    ConvSpec spec = row.spec;
    if (spec.operation != jitconv::Operation::forward && spec.operation != operation) continue;
    spec.operation = operation;
    spec.dtype = arithmetic.dtype, spec.math = arithmetic.math;
    spec.input_layout = spec.output_layout = layout;
    try {
      validate(spec);
    } catch (const jitconv::SpecError&) {
      continue;
    }
    if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
  }
  return specs;
}

int time_lists(const std::vector<std::string>& arguments) {
  constexpr std::string_view kAbove = "--above=";
  double limit = 2;
  std::vector<jitconv::test::ShapeRow> rows;
  for (const std::string& argument : arguments) {
    if (argument.starts_with(kAbove)) {
      limit = std::stod(argument.substr(kAbove.size()));
      continue;
    }
    const std::vector<jitconv::test::ShapeRow> list = jitconv::test::read_shape_list(argument);
    rows.insert(rows.end(), list.begin(), list.end());
  }
  const jitconv::Target target = jitconv::parse_target("sm_90a");
  fmt::print("| operation | arithmetic | layout | specs | median ms | longest ms | above {} ms |\n{}\n", limit,
             "|---|---|---|---|---|---|---|");
  std::string slow;
  for (const auto operation :
       {jitconv::Operation::forward, jitconv::Operation::data_gradient, jitconv::Operation::weight_gradient})
    for (const Arithmetic& arithmetic : kArithmetics)
      for (const auto layout : {jitconv::Layout::nchw, jitconv::Layout::nhwc}) {
        std::vector<double> times;
        std::size_t above = 0;
        for (const ConvSpec& spec : variants_of(rows, operation, arithmetic, layout)) {
          times.push_back(plan_ms(spec, target));
          if (times.back() <= limit) continue;
          ++above;
          slow += fmt::format("{:.2f} ms: {}\n", times.back(), to_string(spec));
        }
        if (times.empty()) continue;
        fmt::print("| {} | {} | {} | {} | {:.2f} | {:.2f} | {} |\n", to_string(operation), arithmetic.name,
                   to_string(layout), times.size(), median(times), *std::max_element(times.begin(), times.end()),
                   above);
      }
  fmt::print("{}", slow);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".csv"); }))
    return time_lists(names);
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
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
