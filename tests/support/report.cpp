// See report.h.
#include "support/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tools/json.h"

namespace jitconv::test {
namespace {

struct Tests {
  int run = 0, failed = 0, skipped = 0;
  std::map<std::string, int> reasons;
};

Tests tests_of_this_process() {
  Tests tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& info = *suite.GetTestInfo(j);
      if (!info.should_run()) continue;
      const ::testing::TestResult& result = *info.result();
      if (!result.Skipped()) {
        ++tests.run;
        if (result.Failed()) ++tests.failed;
        continue;
      }
      ++tests.skipped;
      for (int part = 0; part < result.total_part_count(); ++part)
        if (result.GetTestPartResult(part).skipped()) ++tests.reasons[result.GetTestPartResult(part).message()];
    }
  }
  return tests;
}

}  // namespace

Report& Report::get() {
  static Report report;
  return report;
}

void Report::add(const std::string& name, const Category& more) {
  const std::lock_guard lock(mutex_);
  Category& total = categories_[name];
  total.kernels += more.kernels;
  total.launches += more.launches;
  total.failed += more.failed;
  total.outputs += more.outputs;
  total.reduced += more.reduced;
  for (const auto& [family, count] : more.families) total.families[family] += count;
  if (more.worst_ratio > total.worst_ratio) {
    total.worst_ratio = more.worst_ratio;
    total.worst_case = more.worst_case;
  }
}

void Report::measured(const std::string& name, double value, const std::string& unit) {
  const std::lock_guard lock(mutex_);
  measurements_[name] = {value, unit};
}

Report::Category Report::category(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = categories_.find(name);
  return found == categories_.end() ? Category() : found->second;
}

std::string Report::text(const std::string& suite, const std::string& device) const {
  const std::lock_guard lock(mutex_);
  std::string text = fmt::format("\ndevice: {}\n", device);
  std::int64_t kernels = 0, launches = 0, failed = 0;
  for (const auto& [name, one] : categories_) {
    std::string families;
    for (const auto& [family, count] : one.families)
      families += fmt::format("{}{} {}", families.empty() ? "" : ", ", count, family);
    text += fmt::format("{:<24} {:>5} kernels ({}), {} launches, {} outputs compared, {} failed", name, one.kernels,
                        families, one.launches, one.outputs, one.failed);
    if (one.reduced > 0) text += fmt::format(", {} with a reduced batch", one.reduced);
    if (!one.worst_case.empty())
      text += fmt::format("; worst error {:.3f} of the bound: {}", one.worst_ratio, one.worst_case);
    text += '\n';
    kernels += one.kernels, launches += one.launches, failed += one.failed;
  }
  for (const auto& [name, value] : measurements_)
    text += fmt::format("{}: {:.4g} {}\n", name, value.first, value.second);
  const Tests tests = tests_of_this_process();
  for (const auto& [reason, count] : tests.reasons) text += fmt::format("{} skipped: {}\n", count, reason);
  return text + fmt::format("{}: {} tests run, {} failed, {} skipped; {} kernels, {} launches, {} failed\n", suite,
                            tests.run, tests.failed, tests.skipped, kernels, launches, failed);
}

std::string Report::json(const std::string& device) const {
  using tools::json::Object;
  const std::lock_guard lock(mutex_);
  const Tests tests = tests_of_this_process();
  Object skipped, categories, measurements;
  for (const auto& [reason, count] : tests.reasons) skipped[reason] = count;
  for (const auto& [name, one] : categories_) {
    Object families;
    for (const auto& [family, count] : one.families) families[family] = count;
    categories[name] =
        Object{{"kernels", one.kernels},         {"families", families},        {"launches", one.launches},
               {"outputs", one.outputs},         {"failed", one.failed},        {"reduced", one.reduced},
               {"worst_ratio", one.worst_ratio}, {"worst_case", one.worst_case}};
  }
  for (const auto& [name, value] : measurements_)
    measurements[name] = Object{{"value", value.first}, {"unit", value.second}};
  return tools::json::render(Object{{"device", device},
                                    {"tests_run", tests.run},
                                    {"tests_failed", tests.failed},
                                    {"tests_skipped", tests.skipped},
                                    {"skipped", skipped},
                                    {"categories", categories},
                                    {"measurements", measurements}});
}

}  // namespace jitconv::test
