// One operation laid out on a device: inputs made in place, results poisoned with NaN between guard bytes, and the
// expected values of the elements that are looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitconv/kernel.h"
#include "tools/check/bound.h"
#include "tools/check/data.h"
#include "tools/check/reference.h"
#include "tools/device.h"

namespace jitconv::tools {

/// What came of one launch.
struct OutputCheck {
  check::Comparison comparison;
  bool every_output = false;    ///< all elements of the results were compared, not a sample
  std::int64_t unwritten = 0;   ///< elements of results that are NaN, though no input is
  std::int64_t guards_hit = 0;  ///< bytes before and behind results that changed
  bool passed() const { return comparison.passed() && unwritten == 0 && guards_hit == 0; }
  /// One line.
  std::string text() const;
};

class Problem {
 public:
  /// Allocates and fills. Pointers are multiples of spec.alignment and, below 16, of nothing larger.
  Problem(Device& device, const ConvSpec& spec, check::DataKind kind, std::uint64_t seed);

  /// Device memory that a problem of this spec takes.
  static std::int64_t bytes_needed(const ConvSpec& spec, std::int64_t workspace_bytes);

  const ConvSpec& spec() const { return spec_; }
  /// Arguments of a launch; makes the workspace as large as the kernel wants.
  LaunchArgs arguments(const Kernel& kernel);
  /// Fills results, their guards and the workspace, if arguments() made one, with 0xff, which is NaN in every type.
  void poison();
  /// Computes what the results should be: all elements or, if that would take more than `budget` multiplications, a
  /// sample. Needs nothing that a launch does, so it may be done while another problem's runs.
  void prepare_reference(std::int64_t budget);
  /// Compares what the last launch wrote with the reference, which is prepared if it is not yet.
  OutputCheck check(std::int64_t budget);
  /// The first elements of x, or dy, as the device made them are those that the host makes.
  bool data_agree() const;

 private:
  /// A result with its guards.
  struct Guarded {
    Buffer buffer;
    std::int64_t bytes = 0;
  };
  std::int64_t guard_before() const;
  std::int64_t guards_hit(const Guarded& result) const;

  Device& device_;
  ConvSpec spec_;
  check::DataKind kind_;
  std::uint64_t seed_;
  check::Data data_;
  std::vector<Buffer> inputs_;
  std::vector<Guarded> results_;
  LaunchArgs tensors_;
  Buffer workspace_;
  std::vector<std::int64_t> positions_;
  std::vector<check::Expected> expected_;
};

}  // namespace jitconv::tools
