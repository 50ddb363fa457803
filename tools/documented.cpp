// The table of documented configurations, in the text form of a spec.
#include "tools/documented.h"

#include <algorithm>

namespace jitconv::tools {
namespace {

struct Row {
  std::string_view name, text;
};

constexpr Row kRows[] = {
    // The cases the design is measured by.
    {"A", "input=8,64,512,1024 weight=128,64,3,3"},
    {"A_bias", "input=8,64,512,1024 weight=128,64,3,3 bias"},
    {"B", "input=16,16,1024,1024 weight=128,16,3,3"},
    {"B_bias", "input=16,16,1024,1024 weight=128,16,3,3 bias"},
    {"C", "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3"},
    {"C_bias", "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 bias"},
    {"D", "input=8,64,512,256 weight=128,64,5,7"},
    {"D_bias", "input=8,64,512,256 weight=128,64,5,7 bias"},
    // KernelBench level 1, forward tasks; 1-D tasks as H = 1. Task 50 is the only one with a bias.
    {"KB_L1_50", "input=256,3,224,224 weight=96,3,11,11 stride=4 padding=2 bias"},
    {"KB_L1_55", "input=8,64,512,1024 weight=128,64,3,3"},
    {"KB_L1_56", "input=8,64,512,256 weight=128,64,5,7"},
    {"KB_L1_62", "input=8,32,512,512 weight=64,32,5,9"},
    {"KB_L1_63", "input=16,16,1024,1024 weight=128,16,3,3"},
    {"KB_L1_67", "input=32,64,1,131072 weight=128,64,1,3"},
    {"KB_L1_76", "input=64,64,1,524280 weight=128,64,1,3 stride=1,3 dilation=1,4"},
    {"KB_L1_80", "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3"},
    {"KB_L1_82", "input=16,64,512,512 weight=64,1,3,3 groups=64"},
    {"KB_L1_83", "input=64,8,512,512 weight=8,1,3,1 groups=8"},
    {"KB_L1_84", "input=64,128,256,512 weight=128,1,3,3 groups=128"},
    {"KB_L1_85", "input=32,128,128,256 weight=128,1,3,7 groups=128"},
    {"KB_L1_86_dw", "input=16,64,512,512 weight=64,1,3,3 padding=1 groups=64"},
    {"KB_L1_86_pw", "input=16,64,512,512 weight=128,64,1,1"},
    {"KB_L1_87", "input=16,64,1024,1024 weight=128,64,1,1"},
    // The same tasks in the first release of KernelBench.
    {"KB_L1_55_small", "input=16,3,128,256 weight=64,3,3,3"},
    {"KB_L1_56_small", "input=16,3,256,128 weight=64,3,3,5"},
    {"KB_L1_62_small", "input=16,3,256,256 weight=64,3,3,5"},
    {"KB_L1_63_small", "input=16,3,256,256 weight=64,3,3,3"},
    {"KB_L1_67_small", "input=16,3,1,512 weight=64,3,1,3"},
    {"KB_L1_76_small", "input=16,3,1,256 weight=64,3,1,3 stride=1,3 dilation=1,4"},
    {"KB_L1_80_small", "input=16,3,256,256 weight=64,3,3,5 padding=1,2 dilation=2,1"},
    {"KB_L1_82_small", "input=16,3,256,256 weight=3,1,3,3 groups=3"},
    {"KB_L1_83_small", "input=16,3,256,256 weight=3,1,3,1 groups=3"},
    {"KB_L1_84_small", "input=16,3,128,256 weight=3,1,3,3 groups=3"},
    {"KB_L1_85_small", "input=16,3,128,256 weight=3,1,3,5 groups=3"},
    {"KB_L1_86_pw_small", "input=16,3,254,254 weight=64,3,1,1"},
    {"KB_L1_87_small", "input=16,3,256,256 weight=64,3,1,1"},
    // KernelBench level 1, transposed convolutions: dx is the layer's output. At both sizes.
    {"KB_L1_57", "operation=data_gradient input=8,64,1026,1026 weight=64,64,3,3"},
    {"KB_L1_64", "operation=data_gradient input=64,128,1,65538 weight=128,128,1,3"},
    {"KB_L1_65", "operation=data_gradient input=8,64,514,518 weight=64,64,3,7"},
    {"KB_L1_69", "operation=data_gradient input=64,128,130,260 weight=64,128,3,5"},
    {"KB_L1_71", "operation=data_gradient input=8,32,514,1026 weight=32,32,3,3"},
    {"KB_L1_74", "operation=data_gradient input=32,64,1,131084 weight=32,64,1,5 dilation=1,3"},
    {"KB_L1_75",
     "operation=data_gradient input=16,64,257,766 weight=32,16,3,5 stride=2,3 padding=1,2 dilation=2,1 groups=4"},
    {"KB_L1_78", "operation=data_gradient input=8,32,512,1024 weight=32,32,3,7 padding=1,3"},
    {"KB_L1_79", "operation=data_gradient input=16,64,1,262145 weight=32,64,1,3 stride=1,2 padding=0,1 dilation=1,2"},
    {"KB_L1_81", "operation=data_gradient input=16,64,318,638 weight=32,64,3,3 stride=5 padding=1 dilation=2"},
    {"KB_L1_57_small", "operation=data_gradient input=16,64,130,130 weight=32,64,3,3"},
    {"KB_L1_64_small", "operation=data_gradient input=16,3,1,130 weight=64,3,1,3"},
    {"KB_L1_65_small", "operation=data_gradient input=16,64,130,132 weight=32,64,3,5"},
    {"KB_L1_69_small", "operation=data_gradient input=16,64,18,36 weight=32,64,3,5"},
    {"KB_L1_71_small", "operation=data_gradient input=16,64,130,258 weight=32,64,3,3"},
    {"KB_L1_74_small", "operation=data_gradient input=16,64,1,268 weight=3,64,1,5 dilation=1,3"},
    {"KB_L1_75_small",
     "operation=data_gradient input=16,64,257,766 weight=32,16,3,5 stride=2,3 padding=1,2 dilation=2,1 groups=4"},
    {"KB_L1_78_small", "operation=data_gradient input=16,64,128,256 weight=32,64,3,5 padding=1,2"},
    {"KB_L1_79_small",
     "operation=data_gradient input=16,64,1,257 weight=32,64,1,3 stride=1,2 padding=0,1 dilation=1,2"},
    {"KB_L1_81_small", "operation=data_gradient input=16,64,318,638 weight=32,64,3,3 stride=5 padding=1 dilation=2"},
};

}  // namespace

const std::vector<DocumentedConfiguration>& documented_configurations() {
  static const std::vector<DocumentedConfiguration> configurations = [] {
    std::vector<DocumentedConfiguration> result;
    for (const Row& row : kRows) result.push_back({std::string(row.name), parse_spec(row.text)});
    return result;
  }();
  return configurations;
}

const std::vector<DocumentedConfiguration>& tensor_core_configurations() {
  static const std::vector<DocumentedConfiguration> configurations = [] {
    std::vector<DocumentedConfiguration> result;
    for (const char* name : {"A", "B", "C", "D"}) {
      ConvSpec spec = find_documented(name)->spec;
      spec.math = MathMode::tf32;
      result.push_back({std::string(name) + "_tf32", spec});
      spec = find_documented(name)->spec;
      spec.dtype = DataType::bf16;
      result.push_back({std::string(name) + "_bf16", spec});
    }
    return result;
  }();
  return configurations;
}

const DocumentedConfiguration* find_documented(std::string_view name) {
  const auto find = [name](const std::vector<DocumentedConfiguration>& all) -> const DocumentedConfiguration* {
    const auto found = std::find_if(all.begin(), all.end(), [name](const auto& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
  };
  const DocumentedConfiguration* found = find(documented_configurations());
  return found != nullptr ? found : find(tensor_core_configurations());
}

}  // namespace jitconv::tools
