// The members of Kernel: views of the state its copies share. The work is in kernel_state.cpp.
#include "jitconv/kernel.h"

#include <fmt/format.h>

#include "runtime/kernel_state.h"

namespace jitconv {

void Kernel::launch(void* stream, const LaunchArgs& args) const { state_->launch(stream, args); }

std::int64_t Kernel::workspace_bytes() const { return state_->workspace_bytes(false); }
std::int64_t Kernel::workspace_bytes_with_packed_weights() const { return state_->workspace_bytes(true); }
std::int64_t Kernel::packed_weight_bytes() const { return state_->plan.packed_weight_bytes(); }
void Kernel::pack_weights(void* stream, const void* w, void* packed_w) const {
  state_->pack_weights(stream, w, packed_w);
}
const ConvSpec& Kernel::spec() const { return state_->plan.spec; }
const Target& Kernel::target() const { return state_->plan.target; }
const std::string& Kernel::source() const { return state_->source.text; }
std::string Kernel::plan() const { return codegen::to_string(state_->plan); }
const std::string& Kernel::image() const { return state_->binary().image; }
const std::string& Kernel::compile_log() const { return state_->binary().log; }
std::string Kernel::cache_key() const { return state_->cache_key; }
bool Kernel::from_cache() const { return state_->binary().from_cache; }
std::vector<Resources> Kernel::resources() const { return state_->resources(); }

std::string Kernel::explain() const {
  std::string text = fmt::format("family: {}\n", codegen::to_string(state_->plan.family()));
  for (const codegen::Note& note : state_->plan.notes) text += fmt::format("{}: {}\n", note.topic, note.text);
  return text;
}

}  // namespace jitconv
