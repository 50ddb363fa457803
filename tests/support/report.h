// Counts of what a suite of many convolutions did, for its last lines and for the file of its report: convolutions per
// category, tests that were skipped and why, and the numbers that were measured.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace jitconv::test {

class Report {
 public:
  struct Category {
    std::int64_t kernels = 0;   ///< compiled
    std::int64_t launches = 0;  ///< checked launches, one per kind of data
    std::int64_t failed = 0;    ///< launches that were wrong and kernels that could not be had
    std::int64_t outputs = 0;   ///< values compared with the reference
    std::int64_t reduced = 0;   ///< convolutions with a smaller batch than listed, to fit memory
    double worst_ratio = 0;     ///< largest error in units of the bound, random data
    std::string worst_case;
    std::map<std::string, std::int64_t> families;
  };
  static Report& get();

  void add(const std::string& category, const Category& more);
  void measured(const std::string& name, double value, const std::string& unit);
  Category category(const std::string& name) const;

  /// Several lines: categories, measurements, tests run, failed and skipped, with reasons. Asks GoogleTest for the
  /// latter, so it belongs after RUN_ALL_TESTS(). `suite` starts the last line, `device` says where all that ran.
  std::string text(const std::string& suite, const std::string& device) const;
  std::string json(const std::string& device) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Category> categories_;
  std::map<std::string, std::pair<double, std::string>> measurements_;
};

}  // namespace jitconv::test
