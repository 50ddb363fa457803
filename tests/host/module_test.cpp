// Loaded modules: what they refuse to be, and that every access and operation of a kernel reaches the engine with the
// line it comes from. What the operations compute is in models_test.cpp.
#include "host/module.h"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "host/module_fixture.h"
#include "host/process.h"
#include "jitconv/error.h"
#include "support/file_size_limit.h"

namespace jitconv::test {
namespace {

constexpr float kOne = 1.0f;

TEST_P(ModuleTest, EveryAccessReachesTheEngineWithItsLine) {
  for (int i = 0; i < 64; ++i) x_[i] = static_cast<float>(i);
  run(on_floats("  const float a = x[threadIdx.x];\n"
                "  float sum[4] = {};\n"
                "  for (int i = 0; i < 4; ++i) sum[i] += a * i;\n"
                "  y[3] =\n      sum[3];\n"),
      {x_, y_}, 5);
  EXPECT_EQ(accesses(Kind::load, x_), "4@20 line 2");
  EXPECT_EQ(accesses(Kind::store, y_).substr(0, 4), "4@12");
  EXPECT_TRUE(accesses(Kind::store, y_) == "4@12 line 5" || accesses(Kind::store, y_) == "4@12 line 6")
      << accesses(Kind::store, y_);
  // Locals are no accesses, unless the compiler fills them by memset, and then they are on the stack.
  std::size_t elsewhere = 0;
  for (const Event& event : engine_.events) elsewhere += on_stack(event.address) ? 0 : 1;
  EXPECT_EQ(elsewhere, 2u);
  EXPECT_EQ(y_[3], 15.0f);
}

TEST_P(ModuleTest, AVectorIsOneAccess) {
  run(on_floats("  const float4 a = *reinterpret_cast<const float4*>(x + 4);\n"
                "  *reinterpret_cast<float2*>(y) = make_float2(a.w, a.x);\n"
                "  float4 b = make_float4(a.x, 2.0f, a.z, 4.0f);\n"
                "  *reinterpret_cast<float4*>(y + 8) = b;\n"
                "  *reinterpret_cast<uint4*>(y + 12) = *reinterpret_cast<const uint4*>(x + 12);\n"),
      {x_, y_});
  EXPECT_EQ(accesses(Kind::load, x_), "16@16 line 2, 16@48 line 6");
  EXPECT_EQ(accesses(Kind::store, y_), "8@0 line 3, 16@32 line 5, 16@48 line 6");
}

TEST_P(ModuleTest, AnElementVectorIsOneAccess) {
  for (const auto& [element, size] : {std::pair("f32", 4), std::pair("f16", 2), std::pair("bf16", 2)}) {
    for (int count = 1; count * size <= 16; count *= 2) {
      std::string text = device(fmt::format("device/element_{}.cuh", element).c_str()) + device("device/vector.cuh");
      const auto first = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
      text += fmt::format(
          "extern \"C\" __global__ void probe(const Element* x, Element* y) {{\n"
          "  ElementVector<{0}> v = *reinterpret_cast<const ElementVector<{0}>*>(x + {0});\n"
          "  for (int i = 0; i < {0}; ++i) v.at[i] = from_float(to_float(v.at[i]) + 1.0f);\n"
          "  *reinterpret_cast<ElementVector<{0}>*>(y) = v;\n}}\n",
          count);
      run(small_kernel(text, {input("const Element*", "x"), input("Element*", "y")}), {x_, y_});
      EXPECT_EQ(accesses(Kind::load, x_), fmt::format("{0}@{0} line {1}", count * size, first + 2)) << element << count;
      EXPECT_EQ(accesses(Kind::store, y_), fmt::format("{}@0 line {}", count * size, first + 4)) << element << count;
      const std::uint16_t one = element == std::string("f16") ? 0x3c00 : 0x3f80;
      EXPECT_EQ(std::memcmp(y_, size == 4 ? static_cast<const void*>(&kOne) : &one, static_cast<std::size_t>(size)), 0);
    }
  }
}

TEST_P(ModuleTest, CopiesTheCompilerMakesAreSeen) {
  run(on_floats("  struct Block { float at[40]; };\n"
                "  *reinterpret_cast<Block*>(y) = *reinterpret_cast<const Block*>(x);\n"
                "  for (int i = 48; i < 64; ++i) y[i] = 0.0f;\n"),
      {x_, y_});
  std::vector<bool> loaded(sizeof x_), stored(sizeof y_);
  for (const Event& event : engine_.events) {
    const bool load = event.kind == Kind::load;
    const std::uintptr_t offset = event.address - reinterpret_cast<std::uintptr_t>(load ? x_ : y_);
    for (unsigned i = 0; i < event.bytes && offset + i < sizeof x_; ++i) (load ? loaded : stored)[offset + i] = true;
  }
  for (std::size_t i = 0; i < sizeof x_; ++i) {
    EXPECT_EQ(loaded[i], i < 160) << i;
    EXPECT_EQ(stored[i], i < 160 || i >= 192) << i;
  }
}

TEST_P(ModuleTest, SharedMemoryIsTheModules) {
  run(on_floats("  extern __shared__ __align__(128) float shared[];\n"
                "  shared[threadIdx.x] = x[0];\n"
                "  __syncthreads();\n"
                "  y[0] = shared[31 - threadIdx.x];\n"
                "  y[1] = __cvta_generic_to_shared(shared + 3);\n"),
      {x_, y_}, 3);
  EXPECT_EQ(accesses(Kind::store, module_->shared_memory()), "4@12 line 3");
  EXPECT_EQ(accesses(Kind::load, module_->shared_memory()), "4@112 line 5");
  EXPECT_EQ(y_[1], 12.0f);
  ASSERT_EQ(engine_.of(Kind::barrier).size(), 1u);
  EXPECT_EQ(module_->line_of(engine_.of(Kind::barrier)[0].pc), 4);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(module_->shared_memory()) % 1024, 0u);
  EXPECT_FALSE(module_->contains(module_->shared_memory()));
  EXPECT_FALSE(module_->contains(static_cast<char*>(module_->shared_memory()) + host::Module::kSharedBytes - 1));
  EXPECT_TRUE(module_->contains(module_->current_thread()));
  EXPECT_TRUE(module_->contains(engine_.events.front().pc));
  EXPECT_FALSE(module_->contains(x_));
  EXPECT_EQ(module_->line_of(x_), 0);
}

TEST_P(ModuleTest, AsynchronousCopiesReachTheEngine) {
  const std::string text = device("device/element_f32.cuh") + device("device/copy_async.cuh");
  const auto first = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  run(small_kernel(text + kFloats +
                       "  extern __shared__ float shared[];\n"
                       "  copy_to_shared<4>(shared + 4, x, true);\n"
                       "  copy_to_shared<1>(shared, x + 1, threadIdx.x > 0);\n"
                       "  copy_commit();\n"
                       "  copy_wait<2>();\n}\n",
                   {input("const float*", "x"), input("float*", "y")}),
      {x_, y_});
  const auto copies = engine_.of(Kind::copy);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(accesses(Kind::copy, module_->shared_memory()),
            fmt::format("16@16 line {}, 4@0 line {}", first + 3, first + 4));
  EXPECT_EQ(copies[0].text, "valid");
  EXPECT_EQ(copies[1].text, "zeros");
  EXPECT_EQ(module_->line_of(engine_.of(Kind::commit).at(0).pc), first + 5);
  EXPECT_EQ(engine_.of(Kind::wait).at(0).bytes, 2u);
  EXPECT_EQ(module_->line_of(engine_.of(Kind::wait).at(0).pc), first + 6);
  EXPECT_TRUE(engine_.of(Kind::load).empty()) << "the engine reads the source, not the kernel";
}

TEST_P(ModuleTest, AtomicsLoadAndStore) {
  int i = std::numeric_limits<int>::max();
  float f = 1.5f;
  unsigned u = 7;
  run(small_kernel("extern \"C\" __global__ void probe(int* i, float* f, unsigned* u) {\n"
                   "  atomicAdd(i, 1);\n  *f += atomicAdd(f, 2.0f);\n  atomicAdd(u, *u);\n}\n",
                   {input("int*", "i"), input("float*", "f"), input("unsigned*", "u")}),
      {&i, &f, &u});
  EXPECT_EQ(i, std::numeric_limits<int>::min());
  EXPECT_EQ(f, 5.0f);
  EXPECT_EQ(u, 14u);
  EXPECT_EQ(accesses(Kind::load, &i).substr(0, 10), "4@0 line 2");
  EXPECT_TRUE(engine_.of(Kind::undefined).empty()) << "atomics wrap";
}

TEST_P(ModuleTest, UndefinedArithmeticIsReportedWithOperands) {
  const std::string text =
      "extern \"C\" __global__ void probe(const int* in, int* out) {\n"
      "  out[0] = in[0] + in[1];\n"
      "  out[1] = in[2] - in[1];\n"
      "  out[2] = in[0] * in[0];\n"
      "  out[3] = -in[2];\n"
      "  out[4] = in[1] << in[3];\n"
      "  int table[4] = {in[0], in[1], in[2], in[3]};\n"
      "  out[5] = table[in[4] & 15];\n"
      "  const long long wide = 0x7fffffffffffffffll;\n"
      "  out[6] = static_cast<int>(wide + in[1] >> 32);\n"
      "  out[7] = in[1] / in[5];\n"
      "  out[8] = 1;\n}\n";
  const int in[] = {std::numeric_limits<int>::max(), 1, std::numeric_limits<int>::min(), 40, 5, 0};
  int out[9] = {};
  run(small_kernel(text, {input("const int*", "in"), input("int*", "out")}), {const_cast<int*>(in), out});
  std::vector<std::string> found;
  for (const Event& event : engine_.of(Kind::undefined))
    found.push_back(fmt::format("{}: {}", module_->line_of(event.pc), event.text));
  ASSERT_EQ(found.size(), 8u) << fmt::format("{}", fmt::join(found, "\n"));
  EXPECT_EQ(found[0], "2: signed overflow in 2147483647 + 1");
  EXPECT_EQ(found[1], "3: signed overflow in -2147483648 - 1");
  EXPECT_EQ(found[2], "4: signed overflow in 2147483647 * 2147483647");
  EXPECT_EQ(found[3], "5: signed overflow in --2147483648");
  EXPECT_EQ(found[4], "6: shift without a value: 1 by 40");
  EXPECT_EQ(found[5].substr(0, 23), "8: index 5 outside 'int");
  EXPECT_TRUE(found[6] == "10: signed overflow in 9223372036854775807 + 1" ||
              found[6] == "10: signed overflow in 1 + 9223372036854775807")
      << found[6];
  EXPECT_EQ(found[7], "11: division without a value: 1 / 0");
  EXPECT_EQ(out[8], 0) << "nothing runs after a division by zero";
}

TEST_P(ModuleTest, CountsOnlyWhenCompiledTo) {
  const auto source =
      on_floats("  float sum = 0;\n  for (int i = 0; i < 10; ++i) sum = fmaf(x[i], 2.0f, sum);\n  y[0] = sum;\n");
  run(source, {x_, y_});
  EXPECT_FALSE(module_->counts());
  EXPECT_EQ(*module_->fma_count(), 0u);
  EXPECT_EQ(engine_.blocks, 0u);
  if (purposes(GetParam()).size() == 1) GTEST_SKIP() << GetParam().version << " cannot count";
  run(source, {x_, y_}, 0, host::Purpose::count);
  EXPECT_TRUE(module_->counts());
  EXPECT_EQ(*module_->fma_count(), 10u);
  EXPECT_GE(engine_.blocks, 10u);
  EXPECT_EQ(engine_.of(Kind::load).size(), 10u) << "counting itself is no access";
}

TEST_P(ModuleTest, ModulesOfOneEntryNameStayApart) {
  // Descriptors are used again, and the loader knows libraries by their path.
  std::vector<std::unique_ptr<host::Module>> kept;
  for (int i = 0; i < 6; ++i) {
    auto module = std::make_unique<host::Module>(image(on_floats(fmt::format("  y[0] = {}.0f;\n", i))));
    engine_.run(*module, "probe", {x_, y_});
    EXPECT_EQ(y_[0], static_cast<float>(i));
    if (i % 2 == 0) kept.push_back(std::move(module));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    engine_.run(*kept[i], "probe", {x_, y_});
    EXPECT_EQ(y_[0], static_cast<float>(2 * i));
  }
  EXPECT_EQ(kept.front()->entry("no_such_entry"), nullptr);
}

/// How often /proc/self/maps names the memory files of modules.
int mapped_module_parts() {
  std::ifstream maps("/proc/self/maps");
  int parts = 0;
  for (std::string line; std::getline(maps, line);) parts += line.find("jitconv-module") != std::string::npos ? 1 : 0;
  return parts;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST_P(ModuleTest, HoldsNoDescriptorAndIsUnloaded) {
  const std::string bytes = image(on_floats("  y[0] = x[0];\n"));
  const std::ptrdiff_t descriptors = open_descriptors();
  const int parts = mapped_module_parts();
  {
    const host::Module first(bytes), second(bytes);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_GT(mapped_module_parts(), parts);
    EXPECT_NE(first.shared_memory(), second.shared_memory());
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(mapped_module_parts(), parts);
}

TEST_P(ModuleTest, ALimitOnFileSizesIsAnErrorThatSaysSo) {
  const std::string bytes = image(on_floats("  y[0] = x[0];\n"));
  const FileSizeLimit limit(512);
  try {
    const host::Module module(bytes);
    FAIL() << "loaded";
  } catch (const CudaError& error) {
    EXPECT_NE(error.result(), host::Module::kInvalidImage) << "compiling again would not help";
    EXPECT_NE(std::string(error.what()).find("File too large"), std::string::npos) << error.what();
  }
}

std::string refusal(const std::string& image) {
  try {
    const host::Module module(image);
  } catch (const CudaError& error) {
    EXPECT_EQ(error.result(), host::Module::kInvalidImage);
    return error.what();
  }
  return "loaded";
}

TEST_P(ModuleTest, RefusesDamagedImages) {
  const std::string good = image(on_floats("  y[0] = x[0];\n"));
  EXPECT_EQ(refusal(good), "loaded");
  EXPECT_NE(refusal("").find("0 bytes"), std::string::npos);
  EXPECT_NE(refusal(std::string(500, 'x')).find("not an ELF file"), std::string::npos);
  for (const std::size_t size :
       {std::size_t{3}, std::size_t{63}, std::size_t{64}, std::size_t{100}, std::size_t{1000}, good.size() / 3})
    EXPECT_NE(refusal(good.substr(0, size)), "loaded") << size;
  std::string other = good;
  const Elf64_Half machine = EM_S390;
  other.replace(offsetof(Elf64_Ehdr, e_machine), sizeof machine, reinterpret_cast<const char*>(&machine),
                sizeof machine);
  EXPECT_NE(refusal(other).find("made for machine 22"), std::string::npos) << refusal(other);
  other = good;
  const Elf64_Half type = ET_REL;
  other.replace(offsetof(Elf64_Ehdr, e_type), sizeof type, reinterpret_cast<const char*>(&type), sizeof type);
  EXPECT_NE(refusal(other).find("type 1"), std::string::npos) << refusal(other);
}

TEST_P(ModuleTest, RefusesOtherSharedObjects) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("jitconv-module-test-{}", ::getpid());
  fs::create_directories(folder);
  const auto shared_object = [&](const char* text) {
    std::ofstream(folder / "a.cpp") << text;
    const host::Outcome made = host::run(
        {.arguments = {GetParam().path, "-shared", "-fPIC", "a.cpp", "-o", "a.so"}, .directory = folder.string()});
    EXPECT_TRUE(made.succeeded()) << made.output;
    std::ifstream stream(folder / "a.so", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_NE(refusal(shared_object("int x;")).find("no jitconv_host_module_table"), std::string::npos);
  EXPECT_NE(refusal(shared_object("extern \"C\" { unsigned jitconv_host_module_table[16] = {77}; }"))
                .find("its interface is 77"),
            std::string::npos);
  EXPECT_NE(refusal(shared_object("void nowhere(); extern \"C\" { void (*jitconv_host_module_table)() = nowhere; }"))
                .find("nowhere"),
            std::string::npos);
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Found, ModuleTest, ::testing::ValuesIn(compilers()),
                         [](const auto& one) { return kind_name(one.param); });

}  // namespace
}  // namespace jitconv::test
