// cost_descent: changes entries of cost tables one after the other for as long as the cost model's choices among
// measured candidates get faster. bench/fit_costs.py runs it, and says where measurements come from.
//
//   build/release/bench/cost_descent --tables=wgmma --seconds=300 <measured.txt
//
// Input has two lines for each convolution: its spec, then `place:milliseconds` of its measured candidates, where place
// counts the candidates of `jitconv-dump --emit=candidates` in their order. Output has `entry value` of each entry that
// changed; what was reached goes to stderr.
#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/costs/entries.h"
#include "codegen/plan.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"
#include "tools/check/parallel.h"
#include "tools/options.h"
#include "tools/tool.h"

namespace {

namespace cl = llvm::cl;
using jitconv::ConvSpec;
using jitconv::Target;
using jitconv::codegen::candidate_costs;
using jitconv::codegen::CostEntry;
using jitconv::codegen::Costs;
using jitconv::tools::kCheckFailed;
using jitconv::tools::ToolError;
using jitconv::tools::UsageError;

// Candidates within about so much of the cheapest one's modelled time count as chosen, the less the dearer they are.
// Without it most changes of an entry would change nothing.
constexpr double kUndecided = 0.03;
// What a choice costs is the logarithm of its time over the fastest one's, and so many of its squares: a miss by a
// fifth is worse than ten by a fiftieth.
constexpr double kSquareWeight = 4;
// What a unit of the spread of errors, and of an entry's squared logarithm since the beginning, is worth in units of
// the logarithm of a time.
constexpr double kSpreadWeight = 0.3, kChangeWeight = 0.002;
constexpr double kFirstStep = 0.35, kLastStep = 0.02;  // of an entry's logarithm

struct Measured {
  std::size_t candidate;  ///< in the order of candidate_costs()
  double ms;
};

struct Convolution {
  ConvSpec spec;
  std::vector<Measured> measured;
};

/// Means over convolutions.
struct Loss {
  double chosen = 0;     ///< logarithm of the chosen candidate's time over the fastest one's
  double undecided = 0;  ///< what the candidates cost that could be chosen
  double spread = 0;     ///< standard deviation of the logarithms of measured over modelled time

  Loss& operator+=(const Loss& other) {
    chosen += other.chosen;
    undecided += other.undecided;
    spread += other.spread;
    return *this;
  }
};

Loss loss_of(const Convolution& convolution, const Target& target, const Costs& costs) {
  const std::vector<std::int64_t> prices = candidate_costs(convolution.spec, target, costs);
  const auto price = [&](const Measured& one) { return std::log(static_cast<double>(prices[one.candidate])); };
  const auto& measured = convolution.measured;
  const Measured& cheapest = *std::min_element(measured.begin(), measured.end(),
                                               [&](const auto& a, const auto& b) { return price(a) < price(b); });
  const double fastest =
      std::min_element(measured.begin(), measured.end(), [](const auto& a, const auto& b) { return a.ms < b.ms; })->ms;
  double chances = 0, undecided = 0, weights = 0, mean = 0, square = 0;
  for (const Measured& one : measured) {
    const double chance = std::exp((price(cheapest) - price(one)) / kUndecided);
    chances += chance;
    const double longer = std::log(one.ms / fastest);
    undecided += chance * (longer + kSquareWeight * longer * longer);
    // Candidates far from the fastest count little.
    const double weight = std::pow(fastest / one.ms, 3), error = std::log(one.ms) - price(one);
    weights += weight;
    mean += weight * error;
    square += weight * error * error;
  }
  mean /= weights;
  return {.chosen = std::log(cheapest.ms / fastest),
          .undecided = undecided / chances,
          .spread = std::sqrt(std::max(0.0, square / weights - mean * mean))};
}

Loss mean_loss(const std::vector<Convolution>& convolutions, const Target& target, const Costs& costs) {
  std::vector<Loss> losses(convolutions.size());
  jitconv::check::parallel_for(static_cast<std::int64_t>(losses.size()), 4, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      losses[i] = loss_of(convolutions[i], target, costs);
  });
  const Loss sum = std::accumulate(losses.begin(), losses.end(), Loss{}, [](Loss a, const Loss& b) { return a += b; });
  const auto count = static_cast<double>(losses.size());
  return {sum.chosen / count, sum.undecided / count, sum.spread / count};
}

/// The measured candidates of a line `place:milliseconds ...`; `order` has the candidate of each place.
std::vector<Measured> read_places(const std::string& line, const std::vector<std::size_t>& order) {
  std::vector<Measured> measured;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    std::istringstream one(word);
    std::size_t place = 0;
    char colon = 0;
    double ms = 0;
    if (!(one >> place >> colon >> ms) || !one.eof() || colon != ':' || place >= order.size() || !(ms > 0))
      throw ToolError(kCheckFailed,
                      fmt::format("input: '{}' is not place:milliseconds with a place below {} and a time above 0",
                                  word, order.size()));
    measured.push_back({order[place], ms});
  }
  return measured;
}

/// The convolutions of the input that have a choice.
std::vector<Convolution> read(std::istream& input, const Target& target) {
  std::vector<Convolution> convolutions;
  const Costs& costs = jitconv::codegen::costs_of(target);
  for (std::string spec, places; std::getline(input, spec);) {
    if (!std::getline(input, places))
      throw ToolError(kCheckFailed, fmt::format("input: '{}' is not followed by a line of its candidates", spec));
    Convolution one{jitconv::parse_spec(spec), {}};
    const auto order = jitconv::codegen::cheapest_first(candidate_costs(one.spec, target, costs));
    one.measured = read_places(places, order);
    if (one.measured.size() > 1) convolutions.push_back(std::move(one));
  }
  return convolutions;
}

/// Entries that may change, and what they were.
struct Entry {
  CostEntry entry;
  double first;
};

/// Whether `part` names the entry or a table that it belongs to.
bool belongs(const CostEntry& entry, std::string_view part) {
  return entry.name == part || entry.name.starts_with(fmt::format("{}.", part));
}

std::vector<Entry> entries_of_tables(Costs& costs, const std::vector<std::string>& tables) {
  const std::vector<CostEntry> all = jitconv::codegen::entries_of(costs);
  for (const std::string& table : tables)
    if (std::none_of(all.begin(), all.end(), [&](const CostEntry& entry) { return belongs(entry, table); }))
      throw UsageError(fmt::format(
          "--tables: '{}' is not a table of codegen/costs/ or a part of one, as wgmma and wgmma.store are", table));
  std::vector<Entry> result;
  for (const CostEntry& entry : all)
    if (*entry.value > 0 &&
        std::any_of(tables.begin(), tables.end(), [&](const std::string& table) { return belongs(entry, table); }))
      result.push_back({entry, static_cast<double>(*entry.value)});
  return result;
}

/// Coordinate descent: steps of each entry up and down, which get shorter, are kept where the objective falls.
class Descent {
 public:
  Descent(const std::vector<Convolution>& convolutions, const Target& target, const std::vector<std::string>& tables)
      : convolutions_(convolutions),
        target_(target),
        costs_(jitconv::codegen::costs_of(target)),
        entries_(entries_of_tables(costs_, tables)),
        least_(objective()) {}

  void run(double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    const auto is_over = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds;
    };
    say("before");
    for (double step = kFirstStep; step > kLastStep && !is_over();) {
      bool improved = false;
      for (const Entry& one : entries_) {
        if (is_over()) break;
        improved |= moved(one, step) || moved(one, -step);
      }
      say(fmt::format("steps of {:.2f}", step));
      step *= improved ? 0.75 : 0.5;
    }
  }

  void print() const {
    for (const Entry& one : entries_)
      if (static_cast<double>(*one.entry.value) != one.first) fmt::print("{} {}\n", one.entry.name, *one.entry.value);
  }

 private:
  bool moved(const Entry& one, double step) {
    const std::int64_t old = *one.entry.value;
    std::int64_t value = std::llround(static_cast<double>(old) * std::exp(step));
    if (value == old) value += step > 0 ? 1 : -1;
    if (value < 1) return false;
    *one.entry.value = value;
    if (const double now = objective(); now < least_ - 1e-6) {
      least_ = now;
      return true;
    }
    *one.entry.value = old;
    return false;
  }

  double objective() const {
    const Loss loss = mean_loss(convolutions_, target_, costs_);
    double changes = 0;
    for (const Entry& one : entries_)
      changes += std::pow(std::log(static_cast<double>(*one.entry.value) / one.first), 2);
    return loss.undecided + kSpreadWeight * loss.spread + kChangeWeight * changes;
  }

  void say(std::string_view when) const {
    const Loss loss = mean_loss(convolutions_, target_, costs_);
    fmt::print(stderr, "{}: {} convolutions, choices take {:.4f} times the best's time, spread of errors {:.3f}\n",
               when, convolutions_.size(), std::exp(loss.chosen), loss.spread);
  }

  const std::vector<Convolution>& convolutions_;
  const Target& target_;
  Costs costs_;
  std::vector<Entry> entries_;
  double least_;
};

}  // namespace

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("cost_descent", [&] {
    const cl::cat own(jitconv::tools::tool_category());
    cl::list<std::string> tables("tables", cl::CommaSeparated, cl::OneOrMore, cl::value_desc("name,..."),
                                 cl::desc("Tables, groups and entries that may change, e.g. wgmma or wgmma.store"),
                                 own);
    cl::opt<std::string> arch("arch", cl::init("sm_90a"), cl::desc("Target of the candidates"), own);
    cl::opt<double> seconds("seconds", cl::init(300), cl::desc("How long to look for better values"), own);
    jitconv::tools::parse_command_line(argc, argv, "cost_descent: fits cost tables to measured candidates");
    const Target target = jitconv::parse_target(arch);
    const std::vector<Convolution> convolutions = read(std::cin, target);
    if (convolutions.empty()) throw UsageError("no convolution has two measured candidates");
    Descent descent(convolutions, target, {tables.begin(), tables.end()});
    descent.run(seconds);
    descent.print();
    return 0;
  });
}
