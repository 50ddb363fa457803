// Reads the file header, the program headers and the place of the section table. See shared_object.h.
#include "cache/shared_object.h"

#include <elf.h>

#include <cstring>

namespace jitconv::cache {

namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = -1;  // the loader decides
#endif

/// Whether `size` bytes at `offset` lie in a file of `bytes` bytes.
bool within(std::uint64_t bytes, std::uint64_t offset, std::uint64_t size) {
  return offset <= bytes && size <= bytes - offset;
}

}  // namespace

std::string defect_of_shared_object(std::uint64_t bytes, const ReadAt& read_at) {
  Elf64_Ehdr header;
  if (bytes < sizeof(header)) return "it has " + std::to_string(bytes) + " bytes";
  if (!read_at(0, &header, sizeof(header))) return "it cannot be read";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "not a 64-bit little-endian ELF file";
  if (header.e_type != ET_DYN)
    return "an ELF file of type " + std::to_string(header.e_type) + ", must be a shared object";
  if (kMachine >= 0 && header.e_machine != kMachine)
    return "made for machine " + std::to_string(header.e_machine) + ", this is " + std::to_string(kMachine);
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return "it has no program headers";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const std::uint64_t at = header.e_phoff + i * sizeof(segment);
    if (!within(bytes, at, sizeof(segment))) return "cut short";
    if (!read_at(at, &segment, sizeof(segment))) return "it cannot be read";
    if (!within(bytes, segment.p_offset, segment.p_filesz)) return "cut short";
  }
  // The section table comes last in a file, and so is the first to be missing.
  const std::uint64_t sections = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (!within(bytes, header.e_shoff, sections)) return "cut short";
  return {};
}

std::string defect_of_shared_object(std::string_view image) {
  return defect_of_shared_object(image.size(), [image](std::uint64_t offset, void* to, std::size_t size) {
    std::memcpy(to, image.data() + offset, size);
    return true;
  });
}

}  // namespace jitconv::cache
