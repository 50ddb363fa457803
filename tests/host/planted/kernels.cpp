// See kernels.h.
#include "host/planted/kernels.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "codegen/text/template_text.h"
#include "support/multiply_text.h"

namespace jitconv::test {
namespace {

constexpr std::int64_t kElementsOfX = 250;
constexpr std::int64_t kElementsOfY = 256;

std::string read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string compiled(const std::string& text, const std::vector<std::string>& entries, host::Purpose purpose,
                     const codegen::TensorMapShape& y_map) {
  const char* const type_of_y = y_map.rank != 0 ? "const __grid_constant__ TensorMap" : "float*";
  codegen::KernelSource source;
  source.text = text;
  for (const std::string& name : entries) {
    codegen::KernelEntry entry;
    entry.name = name;
    entry.arguments = {{codegen::Tensor::x, "const float*", "x"}, {codegen::Tensor::y, type_of_y, "y", y_map}};
    source.entries.push_back(entry);
  }
  const host::Compiler compiler = host::find_compiler();
  return host::compile_module(compiler, source, host::compile_options(compiler, purpose)).image;
}

}  // namespace

std::string device_text(const std::string& name) {
  if (name.starts_with("device/multiply_")) return test::multiply_text(name, 8);
  for (const codegen::EmbeddedFile& file : codegen::embedded_files())
    if (file.name == name) return std::string(file.text);
  throw std::runtime_error("templates/ has no " + name);
}

std::string kernel_text(const std::string& name) {
  std::string text = read(std::string(JITCONV_TEST_DATA) + "/host/planted/kernels/" + name + ".cu");
  const std::string include = "#include \"";
  for (std::size_t at = text.find(include); at != std::string::npos; at = text.find(include, at)) {
    const std::size_t first = at + include.size(), last = text.find('"', first);
    text.replace(at, text.find('\n', at) + 1 - at, device_text(text.substr(first, last - first)));
  }
  return text;
}

int line_with(const std::string& kernel, const std::string& text) {
  const std::size_t at = kernel.find(text);
  if (at == std::string::npos || kernel.find(text, at + 1) != std::string::npos)
    throw std::runtime_error("not exactly one line has " + text);
  return 1 + static_cast<int>(std::count(kernel.begin(), kernel.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

TestKernel::TestKernel(const std::string& text, const std::vector<std::string>& entries, host::Purpose purpose,
                       const codegen::TensorMapShape& y_map)
    : module_(compiled(text, entries, purpose, y_map)), y_map_(y_map) {
  for (std::int64_t i = 0; i < kElementsOfX; ++i) memory_.x[i] = static_cast<float>(i);
}

host::Report TestKernel::run(const std::string& entry, const Shape& shape, const host::Settings& settings) {
  std::fill(std::begin(memory_.y), std::end(memory_.y), -1.0f);
  host::Launch launch;
  launch.entry = entry;
  launch.grid = {shape.blocks, shape.blocks_y, shape.blocks_z};
  launch.threads = shape.threads;
  launch.shared_bytes = shape.shared_bytes;
  launch.buffers = {{"x", memory_.x, kElementsOfX * 4, false}, {"y", memory_.y, kElementsOfY * 4, true, y_map_}};
  return host::execute(module_, launch, settings);
}

}  // namespace jitconv::test
