// A kernel with all that its launches take, for the tests of what the API promises about launching.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jitconv/kernel.h"
#include "support/runner.h"

namespace jitconv::test {

/// A kernel, its tensors and the reference for them.
struct Launchable {
  Launchable(tools::Device& on, const ConvSpec& the_spec, std::uint64_t seed)
      : Launchable(on, the_spec, compile(the_spec), seed) {}
  Launchable(tools::Device& on, const ConvSpec& the_spec, const Kernel& the_kernel, std::uint64_t seed)
      : device(on),
        spec(the_spec),
        kernel(the_kernel),
        arena(on),
        reference(make_reference(the_spec, check::DataKind::random, seed, {})),
        args(place_tensors(arena, the_spec, kernel.workspace_bytes())) {
    fill();
  }
  void fill() {
    fill_tensors(device, spec, reference.data, args, kernel.workspace_bytes());
    device.synchronize();
  }
  std::string verdict() {
    Report::Category counts;
    std::string text = judge(device, spec, reference, args, arena, counts);
    Report::get().add("launches", counts);
    return text;
  }
  std::vector<std::byte> bits() { return output_bytes(device, spec, args); }

  tools::Device& device;
  ConvSpec spec;
  Kernel kernel;
  Arena arena;
  Reference reference;
  LaunchArgs args;
};

}  // namespace jitconv::test
