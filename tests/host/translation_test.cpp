// From generated CUDA to the text a C++ compiler takes: nothing but the modelled device functions changes, lines keep
// their numbers, and what has no model is refused by name.
#include "host/translation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "codegen/text/device_text.h"
#include "golden/golden_cases.h"
#include "host/small_kernel.h"
#include "jitconv/error.h"
#include "support/multiply_text.h"

namespace jitconv::test {
namespace {

codegen::KernelSource golden_kernel(const GoldenCase& one, const Target& target = parse_target("sm_90a")) {
  return codegen::generate(codegen::make_plan(one.spec, target));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Lines by number, of one file, as a compiler that obeys #line numbers them.
std::map<int, std::string> numbered(const std::string& unit, const std::string& file) {
  std::map<int, std::string> lines;
  std::string current;
  int number = 0;
  for (const std::string& line : lines_of(unit)) {
    if (line.starts_with("#line ")) {
      number = std::stoi(line.substr(6));
      current = line.substr(line.find('"'));
      continue;
    }
    if (current == "\"" + file + "\"") {
      // Twice the same line can only be the rest of one, which a replacement has ended.
      EXPECT_TRUE(lines.count(number) == 0 || lines[number].empty()) << "line " << number << " occurs twice";
      lines[number] = line;
    }
    ++number;
  }
  return lines;
}

class Translation : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Translation, EveryLineOutsideModelsKeepsItsNumber) {
  const codegen::KernelSource source = golden_kernel(GetParam());
  std::string expected = source.text;
  int replaced = 0;
  std::vector<std::string> modelled;
  for (const char* name : {"element_f16",      "vector",
                           "copy_async",       "barrier",
                           "bulk_copy",        "bulk_store",
                           "warpgroup",        "load_32bit",
                           "load_16bit",       "operand_tf32",
                           "store_32bit",      "store_16bit",
                           "pair_f16",         "pair_bf16",
                           "max_nan",          "opaque",
                           "dependent_launch", "load_vector",
                           "store_transposed", "store_words",
                           "warpgroup_sync",   "tensor_map",
                           "tensor_copy",      "tensor_store",
                           "swizzled_operand", "copy_elements_async",
                           "pixel_operand",    "load_channels"})
    for (const codegen::Declaration& one :
         codegen::declarations_of(codegen::embedded_text(fmt::format("device/{}.cuh", name))))
      if (!one.name.empty()) modelled.emplace_back(one.text);
  // wgrad_wgmma's columns are input channels, unless its operands are boxes.
  const bool of_weights = source.text.find("jitconv_wgrad_wgmma_") != std::string::npos &&
                          source.text.find("constexpr int kColumns = ") == std::string::npos;
  const std::string constant = fmt::format("constexpr int {} = ", of_weights ? "kBlockC" : "kColumns");
  for (const char* type : {"tf32", "f16", "bf16", "registers_tf32", "registers_f16", "registers_bf16", "pixels_f16",
                           "pixels_bf16", "planes_f16", "planes_bf16", "transposed_f16", "transposed_bf16"}) {
    const std::size_t columns = source.text.find(constant);
    if (columns == std::string::npos) break;
    modelled.push_back(test::multiply_text(fmt::format("device/multiply_{}.cuh", type),
                                           std::stoi(source.text.substr(columns + constant.size()))));
    while (modelled.back().back() == '\n') modelled.back().pop_back();
  }
  for (const std::string& text : modelled) {
    const std::size_t at = expected.find(text);
    if (at == std::string::npos) continue;
    ++replaced;
    for (std::size_t i = at; i < at + text.size(); ++i)  // blank it, and keep its lines
      if (expected[i] != '\n') expected[i] = ' ';
  }
  EXPECT_EQ(replaced > 0,
            source.text.find("ElementVector") != std::string::npos || source.text.find("asm") != std::string::npos);
  const std::map<int, std::string> translated = numbered(host::translate(source), host::source_file(source));
  int compared = 0, number = 0;
  for (const std::string& line : lines_of(expected)) {
    ++number;
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    const auto found = translated.find(number);
    ASSERT_NE(found, translated.end()) << "line " << number << " is missing: " << line;
    ASSERT_EQ(found->second, line) << "line " << number;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST_P(Translation, TextIsTheSameForGpuAndHost) {
  const codegen::KernelSource gpu = golden_kernel(GetParam());
  const codegen::KernelSource host = golden_kernel(GetParam(), Target::host(parse_target("sm_90a")));
  EXPECT_EQ(gpu.text, host.text);
  EXPECT_EQ(gpu.entries, host.entries);
}

TEST_P(Translation, IsDeterministic) {
  const codegen::KernelSource source = golden_kernel(GetParam());
  EXPECT_EQ(host::translate(source), host::translate(source));
}

INSTANTIATE_TEST_SUITE_P(Goldens, Translation, ::testing::ValuesIn(golden_cases()),
                         [](const auto& one) { return one.param.name; });

std::string refusal(const codegen::KernelSource& source) {
  try {
    host::translate(source);
  } catch (const CompileError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(error.numbered_source().find("    1 | "), std::string::npos);
    return error.what();
  }
  return "not refused";
}

TEST(TranslationRefuses, AnInstructionWithoutModelByName) {
  const char* const text =
      "// asm(\"a comment\")\n"
      "__device__ const char* words() { return \"asm(text)\"; }\n"
      "/* asm\n*/\n"
      "extern \"C\" __global__ void probe() {\n"
      "  asm volatile(\n      \"{ cp.async.bulk.tensor.2d.shared::cluster.global [%0], [%1];}\" ::: \"memory\");\n"
      "}\n";
  EXPECT_EQ(refusal(small_kernel(text)),
            "no CPU model of the instruction 'cp.async.bulk.tensor.2d.shared::cluster.global' (probe.cu, line 6)");
  EXPECT_EQ(refusal(small_kernel("void f() { __asm__(\"nanosleep.u32\\t100;\"); }\n")),
            "no CPU model of the instruction 'nanosleep.u32' (probe.cu, line 1)");
}

TEST(TranslationRefuses, ADeviceFunctionThatIsNotTheOneItModels) {
  std::string text(codegen::embedded_text("device/element_f16.cuh"));
  const std::size_t at = text.find("cvt.rn.f16.f32");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 6, "cvt.rz");
  EXPECT_NE(refusal(small_kernel(text)).find("'cvt.rz.f16.f32'"), std::string::npos) << refusal(small_kernel(text));
}

TEST(TranslationRefuses, StaticSharedMemory) {
  EXPECT_NE(refusal(small_kernel("__global__ void probe() {\n __shared__ float tile[32];\n}\n")).find("line 2"),
            std::string::npos);
  EXPECT_EQ(refusal(small_kernel("__global__ void probe() { extern __shared__ float shared[]; }\n")), "not refused");
}

TEST(TranslationModels, EveryDeviceFileWithAnInstruction) {
  int with_instructions = 0;
  for (const codegen::EmbeddedFile& file : codegen::embedded_files()) {
    if (file.text.find("asm") == std::string_view::npos) continue;
    ASSERT_TRUE(file.name.starts_with("device/")) << file.name << " holds asm";
    ++with_instructions;
    std::string text =
        file.text.find("Element") != std::string_view::npos && file.name.find("element") == std::string_view::npos
            ? std::string(codegen::embedded_text("device/element_f32.cuh"))
            : std::string();
    text += file.text;
    EXPECT_EQ(refusal(small_kernel(text)), "not refused") << file.name;
  }
  EXPECT_GE(with_instructions, 2);
}

// A device file with holes is known by what stands between them, and filled in several ways it has one model.
TEST(TranslationModels, AMultiplicationOfAnyNumberOfColumns) {
  const std::string tf32 = "device/multiply_tf32.cuh";
  const auto models = [](const std::string& unit) {
    int count = 0;
    for (std::size_t at = unit.find("models/multiply_tf32.h"); at != std::string::npos;
         at = unit.find("models/m", at + 1))
      ++count;
    return count;
  };
  for (const int columns : {8, 72, 256}) {
    const codegen::KernelSource source =
        small_kernel("using A = int;\n" + test::multiply_text(tf32, columns) + "// last\n");
    const std::string unit = host::translate(source);
    EXPECT_EQ(unit.find("wgmma.mma_async"), std::string::npos);
    EXPECT_EQ(models(unit), 1);
    const auto lines = lines_of(source.text);
    EXPECT_EQ(numbered(unit, "probe.cu").at(static_cast<int>(lines.size())), "// last");
  }
  const codegen::KernelSource two =
      small_kernel(test::multiply_text(tf32, 8) + "// between\n" + test::multiply_text(tf32, 16) + "// last\n");
  EXPECT_EQ(models(host::translate(two)), 1);
  EXPECT_EQ(numbered(host::translate(two), "probe.cu").at(static_cast<int>(lines_of(two.text).size())), "// last");
}

TEST(TranslationRefuses, AMultiplicationThatIsNotTheOneItModels) {
  const std::string text = test::multiply_text("device/multiply_f16.cuh", 8);
  const auto changed = [&text](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.rfind(from), from.size(), to);
    return refusal(small_kernel(other));
  };
  EXPECT_EQ(refusal(small_kernel(text)), "not refused");
  EXPECT_NE(changed("m64n8k16", "m64n16k16").find("no CPU model"), std::string::npos) << "two numbers of columns";
  EXPECT_NE(changed("accumulate, 1, 1", "accumulate, 1, -1").find("'setp.ne.b32'"), std::string::npos);
  EXPECT_NE(changed("f32.f16.f16", "f16.f16.f16").find("no CPU model"), std::string::npos);
}

TEST(TranslationWrappers, PassEveryParameterByItsType) {
  const codegen::KernelSource source = golden_kernel(golden_cases().front());
  const codegen::KernelEntry& entry = source.entries.front();
  const std::string unit = host::translate(source);
  EXPECT_NE(unit.find("void " + host::wrapper_name(entry.name) + "(void** parameters)"), std::string::npos);
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    EXPECT_NE(unit.find(fmt::format("using Parameter{} = {};", i, entry.arguments[i].type)), std::string::npos);
  }
}

TEST(TranslationFingerprint, IsADigest) {
  EXPECT_EQ(host::fingerprint().size(), 64u);
  EXPECT_EQ(host::fingerprint().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

}  // namespace
}  // namespace jitconv::test
