// The table of GPUs jitconv generates for. What the programming guide states per compute capability is a hard limit;
// SM count and L2 size are those of one common, large product of that capability and only steer the cost model. Limits
// of the GPU at hand come from the driver, through current_target() in runtime/.
#include "jitconv/target.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "jitconv/error.h"

namespace jitconv {
namespace {

constexpr std::int64_t KiB = 1024;
constexpr std::int64_t MiB = 1024 * KiB;

// Since sm_80 one KiB of each block's shared memory belongs to the system: a block may ask for 1 KiB less than the SM
// has. The first capability with an `a` variant is 9.0.
constexpr std::array<Target, 11> kTargets = {{
    // major, minor, arch-specific, SMs, shared/block, shared/SM, registers/SM, threads/SM, blocks/SM, L2
    {7, 5, false, 72, 64 * KiB, 64 * KiB, 65536, 1024, 16, 6 * MiB},            // Quadro RTX 8000
    {8, 0, false, 108, 163 * KiB, 164 * KiB, 65536, 2048, 32, 40 * MiB},        // A100
    {8, 6, false, 84, 99 * KiB, 100 * KiB, 65536, 1536, 16, 6 * MiB},           // A40
    {8, 7, false, 16, 163 * KiB, 164 * KiB, 65536, 1536, 16, 4 * MiB},          // Jetson AGX Orin
    {8, 9, false, 142, 99 * KiB, 100 * KiB, 65536, 1536, 24, 96 * MiB},         // L40S
    {9, 0, false, 132, 227 * KiB, 228 * KiB, 65536, 2048, 32, 60 * MiB},        // H200
    {10, 0, false, 148, 227 * KiB, 228 * KiB, 65536, 2048, 32, 253 * MiB / 2},  // B200
    {10, 3, false, 148, 227 * KiB, 228 * KiB, 65536, 2048, 32, 253 * MiB / 2},  // B300
    {11, 0, false, 20, 227 * KiB, 228 * KiB, 65536, 1536, 24, 32 * MiB},        // Jetson AGX Thor
    {12, 0, false, 188, 99 * KiB, 100 * KiB, 65536, 1536, 24, 128 * MiB},       // RTX PRO 6000 Blackwell
    {12, 1, false, 48, 99 * KiB, 100 * KiB, 65536, 1536, 24, 24 * MiB},         // GB10
}};

constexpr bool has_specific_variant(const Target& target) { return target.major >= 9; }

std::string known_archs() {
  std::string text;
  for (Target target : kTargets) {
    if (!text.empty()) text += ", ";
    text += target.arch();
    if (!has_specific_variant(target)) continue;
    target.arch_specific = true;
    text += ", " + target.arch();
  }
  return text;
}

/// The number of `sm_<number>`, with or without the `a`.
struct ArchName {
  int number = 0;
  bool specific = false;
};

std::optional<ArchName> read_arch(std::string_view text) {
  constexpr std::string_view prefix = "sm_";
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  text.remove_prefix(prefix.size());
  ArchName name;
  if (!text.empty() && text.back() == 'a') {
    name.specific = true;
    text.remove_suffix(1);
  }
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, name.number);
  // One spelling per architecture: no sign, no leading zero.
  if (result.ec != std::errc{} || result.ptr != end || text.front() < '1') return std::nullopt;
  return name;
}

/// Why a name that exists, or once existed, is not in the table; empty if nothing is known of it.
std::string history_of(const ArchName& name) {
  const int number = name.number;
  if (number == 101) return " (CUDA 13.0 renamed it to sm_110)";
  if (number >= 75) return "";
  if (number >= 50) return " (CUDA 12.9 was the last toolkit that compiled for it)";
  if (number == 35 || number == 37) return " (CUDA 11.8 was the last toolkit that compiled for it)";
  if (number >= 30) return " (CUDA 10.2 was the last toolkit that compiled for it)";
  if (number >= 20) return " (CUDA 8.0 was the last toolkit that compiled for it)";
  if (number >= 10) return " (CUDA 6.5 was the last toolkit that compiled for it)";
  return "";
}

}  // namespace

Target Target::host() { return host(Target{}); }

Target Target::host(const Target& like) {
  Target target = like;
  target.execution = Execution::host;
  return target;
}

std::string Target::arch() const {
  // Aggregates start from the defaults of an H200, so a hand-made sm_86 may still carry its `true`.
  const bool specific = arch_specific && has_specific_variant(*this);
  return "sm_" + std::to_string(compute_capability()) + (specific ? "a" : "");
}

void validate(const Target& target) {
  // Far above any GPU, far below where sums and products of limits overflow.
  constexpr std::int64_t kMostCount = 1 << 20, kMostBytes = std::int64_t{1} << 40;
  const auto require = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    const std::string field = std::string("target.") + name;
    throw SpecError(field, field + " is " + std::to_string(value) + ", must be " + std::to_string(least) + " to " +
                               std::to_string(most));
  };
  require("sm_count", target.sm_count, 1, kMostCount);
  require("shared_bytes_per_block", target.shared_bytes_per_block, 0, kMostBytes);
  require("shared_bytes_per_sm", target.shared_bytes_per_sm, 0, kMostBytes);
  require("registers_per_sm", target.registers_per_sm, 1, kMostCount);
  require("threads_per_sm", target.threads_per_sm, 1, kMostCount);
  require("blocks_per_sm", target.blocks_per_sm, 1, kMostCount);
  require("l2_bytes", target.l2_bytes, 0, kMostBytes);
}

Target parse_target(std::string_view arch) {
  const std::optional<ArchName> name = read_arch(arch);
  for (Target target : kTargets) {
    if (!name || target.compute_capability() != name->number) continue;
    if (name->specific && !has_specific_variant(target)) break;
    target.arch_specific = name->specific;
    return target;
  }
  throw SpecError(ErrorCode::unsupported, "arch",
                  "arch \"" + std::string(arch) + "\"" + (name ? history_of(*name) : "") +
                      " is not supported; known are " + known_archs());
}

std::string to_string(const Target& target) {
  const auto item = [](const char* name, std::int64_t value) {
    return std::string(" ") + name + "=" + std::to_string(value);
  };
  return target.arch() + (target.execution == Execution::host ? " on the host" : "") +
         item("sm_count", target.sm_count) + item("shared_bytes_per_block", target.shared_bytes_per_block) +
         item("shared_bytes_per_sm", target.shared_bytes_per_sm) + item("registers_per_sm", target.registers_per_sm) +
         item("threads_per_sm", target.threads_per_sm) + item("blocks_per_sm", target.blocks_per_sm) +
         item("l2_bytes", target.l2_bytes);
}

}  // namespace jitconv
