// See run_probe.h.
#include "conformance/run_probe.h"

#include <array>

namespace jitconv::test {

LoadedProbe::LoadedProbe(const runtime::Backend& backend, tools::Device& device, const Probe& probe)
    : backend_(backend), device_(device), probe_(probe) {
  const codegen::KernelSource source = kernel_of(probe, device.properties().target, /*items=*/kProbeThreads);
  const runtime::Binary binary = backend.compile(source, backend.options(source, {}));
  const int ordinal = backend.ensure_context();
  image_ = backend.load(binary.image);
  kernel_ = backend.kernel(*image_, source.entries.front().name);
  backend.prepare(kernel_, ordinal, source.entries.front().shared_bytes);
}

Words LoadedProbe::run(const Words& inputs) const {
  const std::size_t items = inputs.size() / probe_.in_words;
  // The text is the same for any number of items; only the grid is not.
  const codegen::KernelSource source = kernel_of(probe_, device_.properties().target, items);
  Words outputs(items * probe_.out_words);
  runtime::LaunchStep step;
  step.entry = &source.entries.front();
  step.kernel = kernel_;
  step.parameters = step.entry->arguments.size();
  step.tensor_maps = step.parameters - 2;
  step.extents[0] = {static_cast<std::int64_t>(inputs.size() * 4), false};
  step.extents[1] = {static_cast<std::int64_t>(outputs.size() * 4), true};

  const tools::Buffer in(device_, step.extents[0].bytes), out(device_, step.extents[1].bytes);
  device_.upload(in.data(), inputs.data(), in.bytes());
  device_.set_bytes(out.data(), 0, out.bytes());
  void *all_in = in.data(), *all_out = out.data();
  std::array<void*, runtime::LaunchStep::kMostParameters> parameters{&all_in, &all_out};
  for (std::size_t i = 2; i < step.parameters; ++i) {
    const bool of_output = step.entry->arguments[i].written();
    parameters[i] = of_output ? &all_out : &all_in;
    step.extents[i] = step.extents[of_output ? 1 : 0];
  }
  backend_.launch(step, nullptr, parameters.data(), /*overlap=*/false);
  device_.synchronize();
  device_.download(outputs.data(), out.data(), out.bytes());
  return outputs;
}

}  // namespace jitconv::test
