// Device functions on real hardware against their models on the CPU, bit for bit. Where there is a GPU both run; where
// there is none the models are held to recorded.json, which a GPU wrote.
//   conformance_test --record FILE --date YYYY-MM-DD   no tests: run every probe on the GPU and write what it gave
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include "codegen/text/template_text.h"
#include "conformance/device_functions.h"
#include "conformance/probes.h"
#include "conformance/recorded.h"
#include "conformance/run_probe.h"
#include "gpu/gpu.h"
#include "host/backend.h"
#include "jitconv/error.h"
#include "tools/host_device.h"

namespace jitconv::test {
namespace {

const std::filesystem::path kRecording = JITCONV_TEST_DATA "/conformance/recorded.json";

tools::HostDevice& cpu() {
  static tools::HostDevice device{Target::host()};
  return device;
}

LoadedProbe on_host(const Probe& probe) {
  return LoadedProbe(runtime::backend_for(cpu().properties().target), cpu(), probe);
}

LoadedProbe on_gpu(const Probe& probe) {
  return LoadedProbe(runtime::backend_for(gpu()->properties().target), *gpu(), probe);
}

/// What the models give. Runs twice, with copies that land late and early and threads in another order, and expects no
/// findings and the same words.
Words run_models(const LoadedProbe& loaded, const Probe& probe, const Words& inputs) {
  Words first;
  for (const host::Landing landing : {host::Landing::late, host::Landing::early}) {
    host::Settings settings;
    settings.landing = landing;
    settings.seed = landing == host::Landing::late ? 11 : 12;
    const host::Session session(settings);
    const Words outputs = loaded.run(inputs);
    for (const host::Report& report : session.reports())
      for (const host::Finding& finding : report.findings) ADD_FAILURE() << probe.name << ": " << to_string(finding);
    if (landing == host::Landing::late) first = outputs;
    EXPECT_EQ(difference(probe, inputs, first, outputs), "") << probe.name << " depends on the order of threads";
  }
  return first;
}

/// Whether models can run here at all; a machine with a GPU may have no C++ compiler.
bool has_host_compiler() {
  try {
    runtime::backend_for(Target::host()).compiler();
    return true;
  } catch (const CompileError&) {
    return false;
  }
}

TEST(DeviceFunctions, AreFoundInText) {
  const std::string text = R"(
// __device__ void in_a_comment();
template <int kN>
__device__ __forceinline__ void first(float* to /* where */, bool valid) { asm("// not a comment"); }
struct Type { float at[4]; };
__device__ __forceinline__ Type
second (Type value) { return value; }
template <> __device__ void third<4>() {}
__device__ inline unsigned third_() { return 1; }
)";
  EXPECT_EQ(device_functions("__device__ int f(int a) { return g(a); }"), std::vector<std::string>{"f"});
  EXPECT_THROW(device_functions(text), std::runtime_error) << "third<4> has a name that is not read";
  std::string readable = text;
  readable.erase(readable.find("template <> "), readable.find("__device__ inline") - readable.find("template <> "));
  EXPECT_EQ(device_functions(readable), (std::vector<std::string>{"first", "second", "third_"}));
  EXPECT_EQ(without_comments("a // b\n  c /* d */ \"// e\"\n"), "a c \"// e\"");
}

/// Arithmetic of integers, which host execution compiles as it is printed: there is no model to compare with a GPU.
const std::set<std::string> kPlain = {"elements_within.cuh: elements_within",
                                      "fragments.cuh: accumulator_column",
                                      "fragments.cuh: accumulator_index",
                                      "fragments.cuh: accumulator_row",
                                      "fragments.cuh: lane_row",
                                      "fragments.cuh: operand_word",
                                      "fragments.cuh: transposed_column",
                                      "fragments.cuh: transposed_first_row",
                                      "fragments.cuh: warp_first_row",
                                      "wgmma_sizes.cuh"};

std::size_t functions_with_probes() { return all_device_functions().size() - kPlain.size(); }

TEST(Conformance, PlainFunctionsUseNothingThatHasAModel) {
  const std::vector<std::string> all = all_device_functions();
  for (const std::string& function : kPlain) {
    EXPECT_EQ(std::count(all.begin(), all.end(), function), 1) << function << " does not exist";
    const std::string text =
        without_comments(codegen::embedded_text("device/" + function.substr(0, function.find(':'))));
    for (const char* name : {"asm", "__shfl", "__byte_perm", "__ld", "__float", "__half", "__funnel", "__popc"})
      EXPECT_EQ(text.find(name), std::string::npos) << function << " uses " << name;
  }
}

// A device function that is written tomorrow and forgotten here fails this test.
TEST(Conformance, EveryDeviceFunctionHasAProbe) {
  std::set<std::string> probed;
  for (const Probe& probe : probes()) {
    EXPECT_GT(probe.items(), 0u) << probe.name;
    EXPECT_EQ(probe.inputs.size() % (kProbeThreads * probe.in_words), 0u) << probe.name;
    probed.insert(probe.functions.begin(), probe.functions.end());
  }
  const std::vector<std::string> all = all_device_functions();
  EXPECT_GE(all.size(), 13u) << "the lexer finds fewer functions than there were when it was written";
  for (const std::string& function : all)
    EXPECT_EQ(probed.count(function) + kPlain.count(function), 1u) << function << " has no probe";
  for (const std::string& function : probed) {
    const bool known = std::find(all.begin(), all.end(), function) != all.end() || function.starts_with("built-in: ");
    EXPECT_TRUE(known) << function << " is probed and does not exist";
  }
}

TEST(Conformance, ARecordingSurvivesItsFile) {
  const Probe& probe = probes().front();
  Words outputs(probe.items() * probe.out_words, 0x12345678u);
  outputs.front() = 0xffffffffu;
  const Recording recording{"a GPU", "a driver", "NVRTC", "2000-01-01", kProbeSeed, {record(probe, outputs)}};
  EXPECT_EQ(recording_from_json(to_json(recording)), recording);
}

// One wrong bit anywhere, a changed device function and changed inputs are all seen.
TEST(Conformance, AWrongModelIsSeen) {
  const Probe& probe = probes().front();
  const Words right = probe.inputs;
  const RecordedProbe recorded = record(probe, right);
  const Words example_outputs(right.begin(), right.begin() + kProbeThreads);
  EXPECT_EQ(difference(probe, recorded, right, example_outputs), "");

  Words wrong = right;
  wrong[wrong.size() / 2] ^= 1u;
  EXPECT_NE(difference(probe, recorded, wrong, example_outputs).find("though all"), std::string::npos);
  EXPECT_NE(difference(probe, probe.inputs, right, wrong).find("1 of "), std::string::npos);

  Words wrong_example = example_outputs;
  wrong_example[3] ^= 0x80000000u;
  EXPECT_NE(difference(probe, recorded, right, wrong_example).find("of the recorded examples, 1 of"),
            std::string::npos);

  Probe changed = probe;
  changed.body += "  out[0] += 1;\n";
  EXPECT_NE(difference(changed, recorded, right, example_outputs).find("record again"), std::string::npos);
  changed = probe;
  changed.inputs.front() ^= 1u;
  EXPECT_NE(difference(changed, recorded, right, example_outputs).find("record again"), std::string::npos);
}

/// How many device functions have only probes in `passed`, and likewise built-ins.
std::pair<std::size_t, std::size_t> count_functions(const std::set<std::string>& passed) {
  std::map<std::string, bool> good;
  for (const Probe& probe : probes()) {
    for (const std::string& function : probe.functions) {
      bool& all = good.emplace(function, true).first->second;
      all = all && passed.count(probe.name) != 0;
    }
  }
  std::pair<std::size_t, std::size_t> counts{0, 0};
  for (const auto& [function, all] : good)
    if (all) ++(function.starts_with("built-in: ") ? counts.second : counts.first);
  return counts;
}

/// "13.0" of "CUDA driver 13.0".
std::string version_of(const std::string& driver) { return driver.substr(driver.rfind(' ') + 1); }

TEST(Conformance, ModelsGiveWhatTheGpuGave) {
  if (!has_host_compiler() && gpu() != nullptr) GTEST_SKIP() << "no C++ compiler here to run the models with";
  Recording recording;
  const bool recorded_at_all = std::filesystem::exists(kRecording);
  EXPECT_TRUE(recorded_at_all) << kRecording << " does not exist: no model was ever confirmed. Write it on a machine "
                               << "with a GPU: conformance_test --record FILE --date YYYY-MM-DD";
  if (recorded_at_all) {
    recording = read_recording(kRecording);
    EXPECT_EQ(recording.seed, kProbeSeed);
  } else {
    recording.device = recording.date = recording.driver = "none";
  }
  std::set<std::string> passed, ran;
  for (const Probe& probe : probes()) {
    const LoadedProbe models = on_host(probe);
    const Words outputs = run_models(models, probe, probe.inputs);
    ran.insert(probe.name);
    const RecordedProbe* recorded = recording.find(probe.name);
    if (recorded == nullptr) {
      if (recorded_at_all) ADD_FAILURE() << probe.name << " was not recorded on a GPU";
      continue;
    }
    const Words example_outputs = run_models(models, probe, example_inputs(probe, *recorded));
    const std::string text = difference(probe, *recorded, outputs, example_outputs);
    EXPECT_EQ(text, "") << probe.name;
    if (text.empty()) passed.insert(probe.name);
  }
  for (const RecordedProbe& recorded : recording.probes)
    EXPECT_EQ(ran.count(recorded.name), 1u) << recorded.name << " is recorded and not a probe";
  const auto modelled = count_functions(ran), confirmed = count_functions(passed);
  const std::string summary = fmt::format(
      "{} device functions modelled, {} confirmed on {}, {}, driver {}; built-ins: {} modelled, {} confirmed",
      modelled.first, confirmed.first, recording.device, recording.date, version_of(recording.driver), modelled.second,
      confirmed.second);
  std::printf("%s\n", summary.c_str());
  RecordProperty("summary", summary);
  EXPECT_EQ(modelled.first, functions_with_probes());
  EXPECT_EQ(confirmed, modelled);
}

class OnGpu : public GpuTest {};

TEST_F(OnGpu, ModelsGiveWhatThisGpuGives) {
  const bool models = has_host_compiler();
  Recording recording;
  if (!models) {
    ASSERT_TRUE(std::filesystem::exists(kRecording)) << "neither a C++ compiler nor " << kRecording;
    recording = read_recording(kRecording);
  }
  std::set<std::string> passed;
  for (const Probe& probe : probes()) {
    if (target().compute_capability() < probe.compute_capability) {
      std::printf("%s needs compute capability %d\n", probe.name.c_str(), probe.compute_capability);
      passed.insert(probe.name);
      continue;
    }
    const LoadedProbe loaded = on_gpu(probe);
    const Words outputs = loaded.run(probe.inputs);
    std::string text;
    if (models) {
      text = difference(probe, probe.inputs, outputs, run_models(on_host(probe), probe, probe.inputs));
    } else if (const RecordedProbe* recorded = recording.find(probe.name)) {
      text = difference(probe, *recorded, outputs, loaded.run(example_inputs(probe, *recorded)));
    } else {
      text = "not recorded";
    }
    EXPECT_EQ(text, "") << probe.name;
    if (text.empty()) passed.insert(probe.name);
  }
  const auto confirmed = count_functions(passed);
  std::printf("%zu device functions modelled, %zu confirmed on this %s (%s), against %s; built-ins: %zu confirmed\n",
              functions_with_probes(), confirmed.first, device().properties().name.c_str(),
              device().properties().driver.c_str(), models ? "the models" : "recorded.json", confirmed.second);
  EXPECT_EQ(confirmed.first, functions_with_probes());
}

int write_recording(const std::string& file, const std::string& date) {
  if (gpu() == nullptr) {
    std::fprintf(stderr, "conformance_test: %s\n", why_no_gpu().c_str());
    return 5;
  }
  const tools::DeviceProperties& device = gpu()->properties();
  for (const Probe& probe : probes()) {
    if (device.target.compute_capability() >= probe.compute_capability) continue;
    std::fprintf(stderr, "conformance_test: %s cannot run on this GPU, so it cannot make a recording\n",
                 probe.name.c_str());
    return 3;
  }
  const runtime::Backend& backend = runtime::backend_for(device.target);
  Recording recording{device.name, device.driver, "NVRTC " + backend.compiler().version, date, kProbeSeed, {}};
  for (const Probe& probe : probes()) recording.probes.push_back(record(probe, on_gpu(probe).run(probe.inputs)));
  std::ofstream stream(file, std::ios::binary);
  if (!(stream << to_json(recording) << std::flush)) {
    std::fprintf(stderr, "conformance_test: cannot write %s\n", file.c_str());
    return 1;
  }
  std::printf("%zu probes of %zu device functions recorded on %s, %s, %s\n", probes().size(), functions_with_probes(),
              device.name.c_str(), device.driver.c_str(), date.c_str());
  return 0;
}

bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  return text.size() == kForm.size() && std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
           return form == 'd' ? c >= '0' && c <= '9' : c == form;
         });
}

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() != 4 || arguments[0] != "--record" || arguments[2] != "--date" || !is_date(arguments[3])) {
    std::fprintf(stderr, "usage: conformance_test [--record FILE --date YYYY-MM-DD]\n");
    return 2;
  }
  return write_recording(std::string(arguments[1]), std::string(arguments[3]));
}

}  // namespace
}  // namespace jitconv::test

int main(int argc, char** argv) {
  try {
    return jitconv::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance_test: %s\n", error.what());
    return 1;
  }
}
