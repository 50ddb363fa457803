// Running out of memory at each allocation that any function of the C interface makes, in this process or in the C
// library: a status, never an exception or the end of the process, and nothing is leaked or left behind that keeps the
// next call from succeeding. This program replaces malloc and its like. Each failure is tried in a child of its own, in
// which nothing has been used before.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "jitconv/jitconv.h"

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void __libc_free(void* memory);
}

namespace {

/// Allocations that still succeed; negative: all. Of the only thread.
long allocations_left = -1;
long allocations = 0, live = 0;

/// Whether this allocation fails, as every later one does.
bool fails() {
  ++allocations;
  if (allocations_left < 0) return false;
  if (allocations_left > 0) {
    --allocations_left;
    return false;
  }
  errno = ENOMEM;
  return true;
}

void* counted(void* memory) {
  if (memory != nullptr) ++live;
  return memory;
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) { return fails() ? nullptr : counted(__libc_malloc(bytes)); }
void* calloc(std::size_t count, std::size_t bytes) { return fails() ? nullptr : counted(__libc_calloc(count, bytes)); }
void* realloc(void* memory, std::size_t bytes) {
  if (memory == nullptr) return malloc(bytes);
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void free(void* memory) {
  if (memory != nullptr) --live;
  __libc_free(memory);
}
}

namespace {

/// What happened in a child.
struct Outcome {
  long allocations = 0, live = 0;
  bool ran_out = false;
  char wrong[200] = "";  ///< empty: nothing
};

Outcome* outcome;  // shared with the children

void expect(bool condition, const char* what) {
  if (condition || outcome->wrong[0] != 0) return;
  std::strncpy(outcome->wrong, what, sizeof outcome->wrong - 1);
}

/// Whether the call succeeded. If not, memory was short, and the status and the text say so or what that led to.
bool went_well(jitconv_status status, const char* call) {
  if (status == JITCONV_OK) return true;
  outcome->ran_out = true;
  expect(allocations_left == 0, call);
  expect(status == JITCONV_INTERNAL || status == JITCONV_COMPILER_MISSING || status == JITCONV_NO_DRIVER, call);
  expect(std::strlen(jitconv_last_error()) > 0, call);
  return false;
}

#define CALL(expression)                               \
  do {                                                 \
    if (!went_well((expression), #expression)) return; \
  } while (false)

const void* at(std::uintptr_t gib) { return reinterpret_cast<const void*>(gib << 30); }

/// Every question about a kernel; memory may be short for each.
void ask(const jitconv_kernel* kernel) {
  std::int64_t shape[4];
  jitconv_resources resources{};
  resources.struct_size = sizeof resources;
  CALL(jitconv_kernel_output_shape(kernel, shape));
  for (const auto text : {jitconv_kernel_spec, jitconv_kernel_source, jitconv_kernel_plan, jitconv_kernel_explain,
                          jitconv_kernel_cache_key, jitconv_kernel_compile_log})
    if (text(kernel) == nullptr) return expect(allocations_left == 0, "a text is null");
  if (jitconv_kernel_entry_count(kernel) == 0) return expect(allocations_left == 0, "no entries");
  CALL(jitconv_kernel_resources(kernel, 0, &resources));
  std::size_t bytes = 0;
  expect(jitconv_kernel_image(kernel, &bytes) != nullptr && bytes > 0, "no image");
}

void launch(const jitconv_kernel* kernel) {
  jitconv_launch_args args{};
  args.struct_size = sizeof args;
  args.x = at(16);
  args.w = at(32);
  args.y = const_cast<void*>(at(48));
  args.workspace = const_cast<void*>(at(64));
  CALL(jitconv_kernel_launch(kernel, nullptr, &args));
  if (jitconv_kernel_packed_weight_bytes(kernel) > 0)
    CALL(jitconv_kernel_pack_weights(kernel, nullptr, at(32), const_cast<void*>(at(80))));
}

/// All functions, for a kernel for `arch`, up to the one for which memory is short.
void use_all(const char* arch) {
  jitconv_spec spec;
  std::int64_t shape[4];
  CALL(jitconv_spec_init(&spec, sizeof spec));
  CALL(jitconv_spec_parse("input=1,3,5,5 weight=2,3,1,1 math=ieee", &spec));
  CALL(jitconv_output_shape(&spec, shape));
  jitconv_kernel* kernel = nullptr;
  CALL(jitconv_compile(&spec, arch, &kernel));
  ask(kernel);
  if (arch == nullptr) launch(kernel);
  jitconv_kernel_destroy(kernel);
  jitconv_stats statistics{};
  statistics.struct_size = sizeof statistics;
  CALL(jitconv_statistics(&statistics));
  CALL(jitconv_release_unused_kernels(nullptr));
}

/// In a child: with the allocations after the first `left` failing, then twice with enough memory.
void run_child(const char* arch, long left, bool keeps_cache) {
  *outcome = {};
  const std::string cache = std::string(std::getenv("TMPDIR")) + "/cache";
  if (!keeps_cache) std::filesystem::remove_all(cache);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    allocations = live = 0;
    allocations_left = left;
    use_all(arch);
    allocations_left = -1;
    outcome->allocations = allocations;
    use_all(arch);
    expect(jitconv_statistics(nullptr) == JITCONV_INVALID_ARGUMENT, "null statistics");  // leaves its text
    outcome->live = live;
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) expect(false, ("the process ended with wait status " + std::to_string(status)).c_str());
}

class MemoryShortage : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(MemoryShortage, IsAStatus) {
  const auto [arch, keeps_cache] = GetParam();
  run_child(arch, -1, false);
  run_child(arch, -1, keeps_cache);
  const Outcome plenty = *outcome;
  ASSERT_STREQ(plenty.wrong, "");
  ASSERT_FALSE(plenty.ran_out);
  EXPECT_GT(plenty.allocations, 300);
  long failures = 0;
  for (long left = 0; left < plenty.allocations; ++left) {
    run_child(arch, left, keeps_cache);
    EXPECT_STREQ(outcome->wrong, "") << "allocation " << left;
    EXPECT_LE(outcome->live, plenty.live) << "allocation " << left;
    failures += outcome->ran_out ? 1 : 0;
  }
  EXPECT_GT(failures, plenty.allocations / 2);  // the cache does without
}

// Compiled, loaded and launched, and taken from the disk cache.
INSTANTIATE_TEST_SUITE_P(Calls, MemoryShortage,
                         testing::Values(std::tuple<const char*, bool>{nullptr, false},
                                         std::tuple<const char*, bool>{"sm_90a", true}));

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  outcome =
      static_cast<Outcome*>(mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::string folder = (std::filesystem::temp_directory_path() / "jitconv-test-XXXXXX").string();
  if (outcome == MAP_FAILED || mkdtemp(folder.data()) == nullptr) return 1;
  setenv("TMPDIR", folder.c_str(), 1);
  setenv("JITCONV_CACHE_DIR", (folder + "/cache").c_str(), 1);
  const int result = RUN_ALL_TESTS();
  std::filesystem::remove_all(folder);
  return result;
}
