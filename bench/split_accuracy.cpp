// split_accuracy: errors of sums whose operands are split into two TF32 numbers, by how often accumulators are added to
// fp32 sums, beside a loop of FMAs. For docs/laboratory.md and codegen/split_operands.h: which sums may be split, and
// when they are promoted. Tensor cores are the model that host execution has of them (host/tile_multiply.h), which
// truncates as the hardware does. Neither compiles nor launches kernels: bench/accuracy.py measures those.
//
//   build/release/bench/split_accuracy --products=64,96,128 --seeds=6
//
// Prints a line for each number of products, kind of data and seed: the largest error of ten million sums, over the sum
// of their products' magnitudes, in units of 2^-24.
#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "codegen/arithmetic.h"
#include "host/tile_multiply.h"
#include "tools/check/parallel.h"
#include "tools/options.h"
#include "tools/tool.h"

namespace {

namespace cl = llvm::cl;
using jitconv::codegen::ceil_div;
using jitconv::host::kMostMultiplyColumns;
using jitconv::host::kMultiplyRows;
using jitconv::host::TileOperand;

constexpr int kDepth = 8;  // products of a multiplication
constexpr int kIntervals[] = {1, 2, 3, 4};
constexpr int kTiles = 620, kTilesOfWeights = 16;  // ten million sums; tiles that share their weights

enum class Data : std::uint8_t { zero_mean, positive, lognormal, lognormal_positive, cancelling, images };
constexpr std::string_view kNames[] = {"zero-mean",           "positive",   "lognormal",
                                       "lognormal, positive", "cancelling", "images"};

/// The kinds of data of bench/accuracy.py, row by row: `products` weights of a channel, or pixels of a position.
class Rows {
 public:
  Rows(Data data, int products, unsigned seed) : data_(data), products_(products), random_(seed) {}

  std::vector<float> weights() {
    std::vector<float> row(static_cast<std::size_t>(products_));
    const float size = 0.02f + 0.08f * uniform();  // of a channel of a trained network
    for (float& weight : row) weight = this->weight(size);
    for (std::size_t i = 0; data_ == Data::cancelling && i < row.size() / 2; ++i)
      row[row.size() / 2 + i] = -row[i] * (1.0f + uniform() * 0x1p-10f);
    return row;
  }

  std::vector<float> pixels() {
    std::vector<float> row(static_cast<std::size_t>(products_));
    const float smooth = uniform();
    for (float& pixel : row) pixel = this->pixel(smooth);
    for (std::size_t i = 0; data_ == Data::cancelling && i < row.size() / 2; ++i) row[row.size() / 2 + i] = row[i];
    return row;
  }

 private:
  float uniform() { return uniform_(random_); }
  float sign() { return uniform() < 0.5f ? -1.0f : 1.0f; }
  float lognormal() { return std::exp(8.85f * normal_(random_)); }  // over 40 orders of magnitude among ten million

  float weight(float size) {
    switch (data_) {
      case Data::positive:
      case Data::lognormal_positive:
        return uniform();
      case Data::cancelling:
        return 0.5f + uniform();
      case Data::images:
        return -size * sign() * std::log(std::max(uniform(), 1e-7f));
      default:
        return normal_(random_);
    }
  }

  float pixel(float smooth) {
    switch (data_) {
      case Data::positive:
        return uniform();
      case Data::lognormal:
        return sign() * lognormal();
      case Data::lognormal_positive:
        return lognormal();
      case Data::cancelling:
        return 0.5f + uniform();
      case Data::images:
        return std::round(std::clamp(smooth + 0.1f * normal_(random_), 0.0f, 1.0f) * 255) / 255 / 0.225f - 2;
      default:
        return normal_(random_);
    }
  }

  Data data_;
  int products_;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  std::uniform_real_distribution<float> uniform_{0.0f, 1.0f};
};

/// The nearest TF32 number of one that is neither subnormal nor near infinity: cvt.rn.tf32.f32.
float round_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

/// Rows of numbers, and both of their parts as operands of a multiplication: [part][multiplication][half][row][4].
struct Operand {
  explicit Operand(const std::vector<std::vector<float>>& values)
      : rows(values),
        count(values.size()),
        multiplications(static_cast<int>(ceil_div(static_cast<std::int64_t>(values.front().size()), kDepth))),
        parts(2 * static_cast<std::size_t>(multiplications * kDepth) * count) {
    for (std::size_t row = 0; row < count; ++row)
      for (std::size_t k = 0; k < rows[row].size(); ++k) {
        const float high = round_to_tf32(rows[row][k]);
        const std::size_t place = (k / 4 * count + row) * 4 + k % 4;
        parts[place] = high;
        parts[parts.size() / 2 + place] = round_to_tf32(rows[row][k] - high);
      }
  }

  TileOperand part(bool low, int multiplication) const {
    const float* first =
        parts.data() + (low ? parts.size() / 2 : 0) + static_cast<std::size_t>(multiplication * kDepth) * count;
    return {.half = {reinterpret_cast<const char*>(first), reinterpret_cast<const char*>(first + 4 * count)},
            .step = 8 * 16};
  }

  std::vector<std::vector<float>> rows;
  std::size_t count;
  int multiplications;
  std::vector<float> parts;
};

std::vector<float> split_sums(const Operand& weights, const Operand& pixels, int interval) {
  std::vector<float> sums(weights.count * pixels.count), partial(sums.size());
  const auto multiply = [&](bool low_weights, bool low_pixels, int i) {
    jitconv::host::multiply_tile(jitconv::host::MultiplyType::tf32, partial.data(),
                                 static_cast<std::uint32_t>(pixels.count), weights.part(low_weights, i),
                                 pixels.part(low_pixels, i));
  };
  const int multiplications = weights.multiplications;
  const int groups = static_cast<int>(ceil_div(multiplications, interval));
  for (int group = 0; group < groups; ++group) {
    const int first = multiplications * group / groups, end = multiplications * (group + 1) / groups;
    std::fill(partial.begin(), partial.end(), 0.0f);
    for (int i = first; i < end; ++i) {
      multiply(true, false, i);
      multiply(false, true, i);
    }
    for (int i = first; i < end; ++i) multiply(false, false, i);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += partial[i];
  }
  return sums;
}

struct Largest {
  double fma_loop = 0;
  double split[std::size(kIntervals)] = {};
};

/// Adds the errors of a tile's sums.
void add_errors(Largest& largest, const Operand& weights, const Operand& pixels) {
  std::vector<float> split[std::size(kIntervals)];
  for (std::size_t i = 0; i < std::size(kIntervals); ++i) split[i] = split_sums(weights, pixels, kIntervals[i]);
  for (std::size_t row = 0; row < weights.count; ++row)
    for (std::size_t column = 0; column < pixels.count; ++column) {
      double exact = 0, magnitude = 0;
      float loop = 0;
      for (std::size_t k = 0; k < weights.rows[row].size(); ++k) {
        const float w = weights.rows[row][k], x = pixels.rows[column][k];
        const double product = static_cast<double>(w) * static_cast<double>(x);
        exact += product;
        magnitude += std::fabs(product);
        loop = std::fma(w, x, loop);
      }
      const auto error = [&](float sum) { return std::fabs(static_cast<double>(sum) - exact) / magnitude * 0x1p24; };
      largest.fma_loop = std::max(largest.fma_loop, error(loop));
      for (std::size_t i = 0; i < std::size(kIntervals); ++i)
        largest.split[i] = std::max(largest.split[i], error(split[i][row * pixels.count + column]));
    }
}

Largest largest_errors(Data data, int products, unsigned seed) {
  Rows rows(data, products, seed);
  const auto operand = [&](std::size_t count, auto&& row) {
    std::vector<std::vector<float>> values(count);
    std::generate(values.begin(), values.end(), row);
    return Operand(values);
  };
  Largest largest;
  for (int tile = 0; tile < kTiles; tile += kTilesOfWeights) {
    const Operand weights = operand(kMultiplyRows, [&] { return rows.weights(); });
    for (int i = 0; i < std::min(kTilesOfWeights, kTiles - tile); ++i)
      add_errors(largest, weights, operand(kMostMultiplyColumns, [&] { return rows.pixels(); }));
  }
  return largest;
}

void print_errors(const std::vector<int>& products, int seeds) {
  fmt::print("| products | data | FMA loop | m = 1 | 2 | 3 | 4 |\n|---|---|---|---|---|---|---|\n");
  const std::size_t kinds = std::size(kNames), runs = kinds * static_cast<std::size_t>(seeds);
  for (const int count : products) {
    std::vector<Largest> largest(runs);
    jitconv::check::parallel_for(static_cast<std::int64_t>(runs), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto run = static_cast<std::size_t>(begin); run < static_cast<std::size_t>(end); ++run)
        largest[run] = largest_errors(static_cast<Data>(run % kinds), count, static_cast<unsigned>(run / kinds) + 1);
    });
    for (std::size_t i = 0; i < runs; ++i) {
      fmt::print("| {} | {} | {:.2f} |", count, kNames[i % kinds], largest[i].fma_loop);
      for (const double split : largest[i].split) fmt::print(" {:.2f} |", split);
      fmt::print("\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("split_accuracy", [&] {
    const cl::cat own(jitconv::tools::tool_category());
    cl::list<int> products("products", cl::CommaSeparated, cl::OneOrMore, cl::value_desc("number,..."),
                           cl::desc("Products of a sum"), own);
    cl::opt<int> seeds("seeds", cl::init(1), cl::desc("Runs with other numbers"), own);
    jitconv::tools::parse_command_line(argc, argv,
                                       "split_accuracy: errors of split operands on truncating tensor cores");
    if (seeds < 1 || std::any_of(products.begin(), products.end(), [](int count) { return count < 2; }))
      throw jitconv::tools::UsageError("--products and --seeds: at least 2 products and 1 run");
    print_errors({products.begin(), products.end()}, seeds);
    return 0;
  });
}
