// Loading and launching. The slow half (load) runs once per kernel and device under the state's lock; the fast half
// (launch) checks the pointers, reads one atomic and calls the backend.
#include "runtime/kernel_state.h"

#include <fmt/format.h>

#include <span>

#include "runtime/cuda_abi.h"
#include "runtime/fork_guard.h"
#include "runtime/log.h"
#include "runtime/progress.h"
#include "runtime/ptxas_log.h"

namespace jitconv::detail {
namespace {

using codegen::Tensor;
using codegen::TensorMapShape;

/// Made sure of when a kernel is made, so that no launch has to: a parameter has a pointer whenever its entry runs.
/// What packs weights runs alone, too; without it there may be no w.
void require_pointer(const codegen::ConvPlan& plan, const runtime::LaunchRules& rules,
                     const codegen::KernelEntry& entry, Tensor tensor) {
  const bool packs = plan.packed_weight_bytes() != 0;
  // The gradient of weights over no images is zero: its kernels look at no pixel of x and dy, which may be null.
  const bool is_empty_batch = plan.spec.input.n == 0 && (tensor == codegen::Tensor::x || tensor == codegen::Tensor::dy);
  const auto region = static_cast<std::size_t>(tensor) - static_cast<std::size_t>(Tensor::scratch);
  const bool there = codegen::is_scratch(tensor) ? region < plan.scratch.size() &&
                                                       (plan.scratch[region].is_packed_weights || !entry.packs_weights)
                     : tensor == Tensor::w ? packs == entry.packs_weights
                                           : (rules.bytes(tensor) != 0 || is_empty_batch) && !entry.packs_weights;
  if (there) return;
  throw InternalError(fmt::format("{} has a parameter for tensor {}, for which its launch has no pointer", entry.name,
                                  static_cast<int>(tensor)));
}

/// Why no copy can bring the box of a tensor map; empty if copies can.
std::string defect_of_box(const TensorMapShape& map) {
  for (const int extent : std::span(map.box).first(static_cast<std::size_t>(map.rank)))
    if (extent < 1 || extent > TensorMapShape::kMostBox) return fmt::format("a box with an extent of {}", extent);
  return "";
}

/// Why no copy can bring pixels of a tensor map's walk; empty if copies can.
std::string defect_of_im2col(const TensorMapShape& map) {
  if (map.rank != 4) return fmt::format("an im2col map of rank {}", map.rank);
  if (map.box[0] < 1 || map.box[0] > TensorMapShape::kMostBox)
    return fmt::format("an im2col map with {} channels", map.box[0]);
  if (map.box[1] < 1 || map.box[1] > TensorMapShape::kMostIm2colPixels)
    return fmt::format("an im2col map with {} pixels", map.box[1]);
  for (std::size_t i = 0; i < map.im2col->lower.size(); ++i) {
    const int lower = map.im2col->lower[i], upper = map.im2col->upper[i], stride = map.im2col->stride[i];
    for (const int corner : {lower, upper})
      if (corner < TensorMapShape::kLeastCorner || corner > TensorMapShape::kMostCorner)
        return fmt::format("an im2col map with a corner at {}", corner);
    if (stride < 1 || stride > TensorMapShape::kMostIm2colStride)
      return fmt::format("an im2col map with a stride of {}", stride);
    if (lower >= map.extents[i + 1] + upper)
      return fmt::format("an im2col map without pixels from {} to {}", lower, upper);
  }
  return "";
}

/// What TMA asks of a tensor map, so that no launch can be refused for it.
void require_tensor_map(const runtime::LaunchRules& rules, const codegen::KernelEntry& entry,
                        const codegen::Argument& argument) {
  constexpr std::int64_t kMostBytes = 228 * 1024;  // shared memory of a multiprocessor; not in the driver's manual
  const TensorMapShape& map = argument.map;
  const auto refuse = [&](const std::string& reason) {
    throw InternalError(fmt::format("{} has a tensor map {} that cannot be: {}", entry.name, argument.name, reason));
  };
  if (map.rank < 2 || map.rank > TensorMapShape::kMostRank) refuse(fmt::format("of rank {}", map.rank));
  if (map.element_bytes != 2 && map.element_bytes != 4) refuse(fmt::format("elements of {} bytes", map.element_bytes));
  if (argument.written() && map.im2col) refuse("an im2col map of what the kernel writes");
  if (argument.written() && map.rounds_to_tf32) refuse("what the kernel writes is to be rounded");
  if (argument.written() && map.extents[0] * map.element_bytes % TensorMapShape::kUnit != 0)
    refuse(fmt::format("rows of {} bytes, behind which a store would write", map.extents[0] * map.element_bytes));
  if (rules.alignment(argument.tensor) % TensorMapShape::kUnit != 0) refuse("the tensor is at no multiple of 16 bytes");
  if (map.strides[0] != 1) refuse(fmt::format("a stride of {} along the first axis", map.strides[0]));
  std::int64_t last = 0;  // element
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    if (map.extents[i] < 1 || map.extents[i] > TensorMapShape::kMostExtent)
      refuse(fmt::format("an extent of {}", map.extents[i]));
    const std::int64_t stride = map.strides[i] * map.element_bytes;
    if (i > 0 && (stride < 1 || stride >= TensorMapShape::kMostStride || stride % TensorMapShape::kUnit != 0))
      refuse(fmt::format("a stride of {} bytes", stride));
    if (map.extents[i] - 1 > rules.bytes(argument.tensor) / stride) refuse("it is larger than the tensor");
    last += (map.extents[i] - 1) * map.strides[i];
  }
  if (const std::string defect = map.im2col ? defect_of_im2col(map) : defect_of_box(map); !defect.empty())
    refuse(defect);
  const char* const kind = map.im2col ? "an im2col map" : "a box";
  if (map.box_bytes() > kMostBytes) refuse(fmt::format("{} of {} bytes", kind, map.box_bytes()));
  const std::int64_t row = map.box[0] * map.element_bytes;
  if (row % TensorMapShape::kUnit != 0) refuse(fmt::format("{} with rows of {} bytes", kind, row));
  if (map.rounds_to_tf32 && map.element_bytes != 4) refuse("no floats are to be rounded");
  const int swizzle = map.swizzle_bytes;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    refuse(fmt::format("a swizzle of {} bytes", swizzle));
  if (swizzle != 0 && row != swizzle) refuse(fmt::format("rows of {} bytes, swizzled as if of {}", row, swizzle));
  if ((last + 1) * map.element_bytes > rules.bytes(argument.tensor)) refuse("it is larger than the tensor");
}

}  // namespace

KernelState::KernelState(const runtime::Backend& the_backend, codegen::ConvPlan the_plan,
                         codegen::KernelSource the_source, std::string key, runtime::Binary binary,
                         std::function<runtime::Binary(const KernelState&)> recompile)
    : backend(the_backend),
      plan(std::move(the_plan)),
      source(std::move(the_source)),
      cache_key(std::move(key)),
      rules_(plan),
      first_binary_(std::move(binary)),
      recompile_(std::move(recompile)),
      binary_(&first_binary_) {
  for (const codegen::KernelEntry& entry : source.entries) {
    if (entry.packs_weights && !steps_.empty() && !steps_.back().launch.entry->packs_weights)
      throw InternalError(entry.name + " packs weights behind a kernel that reads them");
    auto& [launch, tensors] = steps_.emplace_back();
    launch.entry = &entry;
    launch.parameters = entry.arguments.size();
    if (launch.parameters > tensors.size()) throw InternalError(entry.name + " has too many parameters");
    for (std::size_t i = 0; i < launch.parameters; ++i) {
      const Tensor tensor = entry.arguments[i].tensor;
      require_pointer(plan, rules_, entry, tensor);
      tensors[i] = static_cast<std::uint8_t>(tensor);
      launch.extents[i] = {rules_.bytes(tensor), entry.arguments[i].written()};
      if (entry.arguments[i].map.rank == 0) continue;
      require_tensor_map(rules_, entry, entry.arguments[i]);
      ++launch.tensor_maps;
    }
    if (launch.tensor_maps > runtime::LaunchStep::kMostTensorMaps)
      throw InternalError(entry.name + " has too many tensor maps");
  }
}

std::vector<Resources> KernelState::resources() const {
  if (ready_devices_.load(std::memory_order_acquire) == 0)
    return runtime::resources_from_log(binary().log, source.entries);
  std::vector<Resources> all;
  for (const auto& [launch, tensors] : steps_) {
    const runtime::DeviceKernelInfo& info = launch.info;
    all.push_back({info.registers, info.local_bytes, info.static_shared_bytes + launch.entry->shared_bytes,
                   static_cast<int>(launch.entry->threads)});
  }
  return all;
}

void KernelState::load_image(int device) const {
  auto image = backend.load(binary().image);
  std::vector<Step> steps = steps_;
  for (auto& [launch, tensors] : steps) {
    launch.kernel = backend.kernel(*image, launch.entry->name);
    launch.info = backend.prepare(launch.kernel, device, launch.entry->shared_bytes);
  }
  image_ = std::move(image);
  steps_.swap(steps);
}

void KernelState::load(int device) const {
  if (source.entries.empty()) return;
  const std::lock_guard lock(mutex_);
  if (ready_on(device)) return;
  backend.require_fitting_device(plan.target, device);
  const runtime::Stopwatch watch;
  if (image_ != nullptr) {
    for (const auto& [launch, tensors] : steps_) {
      backend.prepare(launch.kernel, device, launch.entry->shared_bytes);
    }
  } else {
    try {
      load_image(device);
    } catch (const Error& error) {
      // A file of the cache that was whole but is of no use must cost a compilation, not the launch.
      if (!backend.refuses_image(error) || !binary().from_cache) throw;
      runtime::log(runtime::LogLevel::warn,
                   fmt::format("the cached image of {} is refused, compiling again: {}", source.name(), error.what()));
      second_binary_ = std::make_unique<const runtime::Binary>(recompile_(*this));
      binary_.store(second_binary_.get(), std::memory_order_release);
      load_image(device);
    }
  }
  runtime::log_load(source, device, watch);
  if (device < 64) ready_devices_.fetch_or(std::uint64_t{1} << device, std::memory_order_release);
}

void KernelState::make_ready(void* stream) const {
  runtime::refuse_after_fork();
  const int device = backend.ensure_context();
  if (ready_on(device)) [[likely]]
    return;
  if (backend.is_capturing(stream)) {
    throw CudaError(ErrorCode::cuda, runtime::cuda::kCaptureUnsupported, "launch",
                    fmt::format("the stream is being captured and the kernel is not loaded on device {} yet: compile "
                                "for the current device, or launch once, before the capture",
                                device));
  }
  load(device);
}

void KernelState::launch_step(const Step& step, void* stream, const runtime::TensorPointers& pointers,
                              bool overlap) const {
  std::array<void*, runtime::LaunchStep::kMostParameters> parameters;
  for (std::size_t i = 0; i < step.launch.parameters; ++i) {
    parameters[i] = const_cast<void*>(static_cast<const void*>(&pointers[step.tensors[i]]));
  }
  backend.launch(step.launch, stream, parameters.data(), overlap);
}

void KernelState::launch(void* stream, const LaunchArgs& args) const {
  if (source.entries.empty()) return;
  const runtime::GivenPointers given = runtime::given_pointers(args);
  rules_.check(given);
  make_ready(stream);
  const bool packed = rules_.packed(given);
  const runtime::TensorPointers pointers = rules_.resolved(given);
  // The first kernel of a launch is never let start early: when it starts, everything before it in the stream is
  // complete, the caller's own kernels and earlier launches that used the same workspace included. So those behind it
  // may read the caller's tensors at once, and need wait only for each other. And they do wait, all their blocks: when
  // the last of them is complete, all are, so that what follows in the stream, if launched plainly, overlaps with none.
  bool is_first = true;
  for (const Step& step : steps_) {
    if (packed && step.launch.entry->packs_weights) continue;
    launch_step(step, stream, pointers, /*overlap=*/!is_first && step.launch.entry->starts_early);
    is_first = false;
  }
}

void KernelState::pack_weights(void* stream, const void* w, void* packed_w) const {
  rules_.check_packing(w, packed_w);
  make_ready(stream);
  LaunchArgs args;
  args.w = w;
  args.packed_w = packed_w;
  const runtime::TensorPointers pointers = rules_.resolved(runtime::given_pointers(args));
  for (const Step& step : steps_) {
    if (step.launch.entry->packs_weights) launch_step(step, stream, pointers, /*overlap=*/false);
  }
}

}  // namespace jitconv::detail
