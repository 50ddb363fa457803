// The lists of shapes and the table of documented configurations: readable, valid, and of one mind.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>

#include "jitconv/spec.h"
#include "support/shape_lists.h"
#include "tools/documented.h"

namespace jitconv {
namespace {

using test::ShapeRow;
using tools::documented_configurations;
using tools::find_documented;

const std::filesystem::path kShapes = std::filesystem::path(JITCONV_TEST_DATA) / "shapes";

TEST(ShapeLists, EveryRowIsValid) {
  const std::vector<ShapeRow> rows = test::all_shapes(kShapes), forward = test::forward_shapes(kShapes);
  EXPECT_GE(forward.size(), 1100u);
  EXPECT_EQ(rows.size(), forward.size() + 20) << "transposed convolutions";
  std::set<std::string> lists;
  for (const ShapeRow& row : rows) {
    lists.insert(row.list);
    EXPECT_NO_THROW(validate(row.spec)) << row.list << ".csv:" << row.line << " " << row.name;
  }
  EXPECT_GE(lists.size(), 10u);
}

TEST(ShapeLists, ColumnsMeanWhatTheirNamesSay) {
  const std::string header = "name,N,C,H,W,K,R,S,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups";
  const std::string numbers = "a,1,6,3,4,10,7,8,9,10,11,12,13,14,2";
  const ShapeRow plain = test::parse_shape_list("t", header + "\n" + numbers + "\n").at(0);
  ConvSpec expected;
  expected.input = {1, 6, 3, 4};
  expected.weight = {10, 3, 7, 8};
  expected.stride = {9, 10};
  expected.padding = {11, 12};
  expected.dilation = {13, 14};
  expected.groups = 2;
  EXPECT_EQ(plain.spec, expected);
  EXPECT_EQ(plain.list, "t");
  EXPECT_EQ(plain.line, 2);

  const ShapeRow uneven = test::parse_shape_list("t", header + ",pad_h_end,pad_w_end\n" + numbers + ",15,16\n").at(0);
  EXPECT_EQ(uneven.spec.padding, Padding(11, 15, 12, 16));

  const auto mixed = test::parse_shape_list("t", header + ",transposed\n" + numbers + ",1\n" + numbers + ",0\n");
  EXPECT_EQ(mixed.at(0).spec.operation, Operation::data_gradient);
  EXPECT_EQ(mixed.at(1).spec.operation, Operation::forward);
}

TEST(ShapeLists, ATransposedRowIsTheDataGradientOfWhatItReads) {
  const std::string header = "name,N,C,H,W,K,R,S,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups";
  const ShapeRow row =
      test::parse_shape_list("t", header + ",output_pad_h,output_pad_w\n5,2,6,5,7,4,3,2,3,5,1,0,2,1,2,1,4\n").at(0);
  // PyTorch: (5 - 1) * 3 - 2 * 1 + 2 * (3 - 1) + 1 + 1 rows of 4 channels, and (7 - 1) * 5 + 1 * (2 - 1) + 4 + 1
  // columns.
  const ConvSpec expected =
      parse_spec("operation=data_gradient input=2,4,16,36 weight=6,2,3,2 stride=3,5 padding=1,0 dilation=2,1 groups=2");
  EXPECT_EQ(row.spec, expected);
  EXPECT_EQ(output_shape(row.spec), (TensorShape{2, 6, 5, 7})) << "what the layer reads";
}

TEST(ShapeLists, FaultsAreNamed) {
  const std::string header = "name,N,C,H,W,K,R,S,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups";
  const auto message = [](const std::string& text) -> std::string {
    try {
      test::parse_shape_list("list", text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message(""), "list.csv:1: is empty");
  EXPECT_EQ(message("name,N\n"), "list.csv:1: has no column C");
  EXPECT_EQ(message(header + ",colour\n"), "list.csv:1: has the unknown column colour");
  EXPECT_EQ(message(header + "\na,1,2\n"), "list.csv:2: has not as many cells as the header");
  EXPECT_EQ(message(header + "\na,1,6,3,4,x,7,8,9,10,11,12,13,14,2\n"), "list.csv:2: K is 'x'");
}

/// "KB_L1_86_conv_depthwise_separable_2D_dw" of a list of the first release -> "KB_L1_86_dw_small".
std::string short_name(const ShapeRow& row) {
  static const std::regex pattern("(KB_L1_[0-9]+).*?(_dw|_pw)?");
  std::smatch match;
  if (!std::regex_match(row.name, match, pattern)) return "";
  const bool small = row.list.find("_v0_small") != std::string::npos;
  return match[1].str() + match[2].str() + (small ? "_small" : "");
}

TEST(Documented, TableAndListsAgreeRowByRow) {
  std::map<std::string, ConvSpec> from_lists;
  for (const ShapeRow& row : test::all_shapes(kShapes)) {
    if (row.list.rfind("kernelbench_l1", 0) != 0) continue;
    ConvSpec spec = row.spec;
    const std::string name = short_name(row);
    ASSERT_FALSE(name.empty()) << row.name;
    spec.epilogue.bias = name == "KB_L1_50";  // the only task whose module has a bias
    EXPECT_TRUE(from_lists.emplace(name, spec).second) << name << " twice";
  }
  EXPECT_EQ(from_lists.size(), 28u + 20u) << "forward and transposed";
  std::size_t in_table = 0;
  for (const auto& configuration : documented_configurations()) {
    if (configuration.name.rfind("KB_", 0) != 0) continue;
    ++in_table;
    const auto found = from_lists.find(configuration.name);
    ASSERT_NE(found, from_lists.end()) << configuration.name;
    EXPECT_EQ(configuration.spec, found->second) << configuration.name;
  }
  EXPECT_EQ(in_table, from_lists.size());
}

TEST(Documented, HeadlineCasesAreTheirKernelBenchTasks) {
  const std::map<std::string, std::string> tasks = {
      {"A", "KB_L1_55"}, {"B", "KB_L1_63"}, {"C", "KB_L1_80"}, {"D", "KB_L1_56"}};
  for (const auto& [name, task] : tasks) {
    ASSERT_NE(find_documented(name), nullptr);
    ConvSpec spec = find_documented(name)->spec;
    EXPECT_EQ(spec, find_documented(task)->spec);
    spec.epilogue.bias = true;
    ASSERT_NE(find_documented(name + "_bias"), nullptr);
    EXPECT_EQ(find_documented(name + "_bias")->spec, spec);
  }
}

TEST(Documented, NamesAreUniqueAndSpecsValid) {
  std::set<std::string> names;
  for (const auto& configuration : documented_configurations()) {
    EXPECT_TRUE(names.insert(configuration.name).second) << configuration.name;
    EXPECT_NO_THROW(validate(configuration.spec)) << configuration.name;
    EXPECT_EQ(find_documented(configuration.name), &configuration);
  }
  EXPECT_EQ(names.size(), 56u);
  EXPECT_EQ(find_documented("E"), nullptr);
}

TEST(Documented, OneHasAnOutputBeyond32BitIndices) {
  const TensorShape y = output_shape(find_documented("KB_L1_87")->spec);
  EXPECT_EQ(y.n * y.c * y.h * y.w, std::int64_t{1} << 31);
}

}  // namespace
}  // namespace jitconv
