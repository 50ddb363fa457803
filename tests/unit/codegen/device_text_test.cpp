// How device files are split into declarations, and which of them a kernel's text has.
#include "codegen/text/device_text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "codegen/text/emitter.h"
#include "codegen/text/template_text.h"

namespace jitconv::codegen {
namespace {

std::vector<std::string> names_in(std::string_view file) {
  std::vector<std::string> names;
  for (const Declaration& one : declarations_of(file)) names.emplace_back(one.name);
  return names;
}

TEST(DeclarationsOf, AreFunctionsTypesConstantsAndCommentsSetApart) {
  const std::string file =
      "// Of the file.\n\n// Of a.\nconstexpr int kA = 1;\nusing B = int;\n"
      "template <int kN>\nstruct alignas(kN * sizeof(int)) C {\n  int at[kN];\n};\n\n"
      "// Of d.\n__device__ __forceinline__ int d(int x) { return x; }\n"
      "template <int kN>\n__device__ __forceinline__ void e(\n    int x) {\n#pragma unroll\n  d(x);\n}\n";
  EXPECT_EQ(names_in(file), (std::vector<std::string>{"", "kA", "B", "C", "d", "e"}));
  const std::vector<Declaration> all = declarations_of(file);
  EXPECT_EQ(all[0].text, "// Of the file.");
  EXPECT_EQ(all[1].text, "// Of a.\nconstexpr int kA = 1;");
  EXPECT_EQ(all[4].text, "// Of d.\n__device__ __forceinline__ int d(int x) { return x; }");
  EXPECT_TRUE(all[4].after_empty_line && all[1].after_empty_line && !all[2].after_empty_line);
}

TEST(DeclarationsOf, HaveAllOfEveryDeviceFile) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.name.starts_with("device/")) continue;
    std::string text;
    for (const Declaration& one : declarations_of(file.text)) {
      text += std::string(one.after_empty_line ? "\n" : "") + std::string(one.text) + "\n";
      const std::size_t last_line = one.text.rfind('\n') + 1;  // 0 if there is one line
      EXPECT_EQ(one.name.empty(), one.text.substr(last_line).starts_with("//")) << file.name << ": " << one.text;
    }
    EXPECT_EQ(text, file.text) << file.name;
  }
}

TEST(DeviceText, IsTheFilesOneAfterTheOther) {
  const std::string text =
      device_text({{element_header(DataType::f32)}, {"device/vector.cuh"}}, "Element x; ElementVector<4> y;");
  EXPECT_NE(text.find("using Element = float;"), std::string::npos);
  EXPECT_GT(text.find("struct alignas"), text.find("using Element = float;"));
  EXPECT_NE(text.back(), '\n');
  EXPECT_NE(element_header(DataType::f16), element_header(DataType::bf16));
}

TEST(DeviceText, HasWhatKernelsNameAndWhatThatNeeds) {
  const std::vector<DeviceFile> files = {
      {"device/barrier.cuh"}, {"device/bulk_store.cuh"}, {"device/dependent_launch.cuh"}};
  const std::string text = device_text(files, "barrier_arrive(full);  // not barrier_wait()\nbulk_stores_commit();");
  EXPECT_EQ(text.find("barrier_wait("), text.find("barrier_wait(b, n % 2)"));  // in a comment
  for (const char* part : {"struct alignas(8) Barrier", "unsigned barrier_address(", "void barrier_arrive(",
                           "// Shared to global copies by TMA", "void bulk_stores_commit("})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  for (const char* part : {"void barrier_init(", "void bulk_copy_to_global(", "Overlapped launches", "griddepcontrol"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
  EXPECT_EQ(device_text(files, "nothing"), "");
}

}  // namespace
}  // namespace jitconv::codegen
