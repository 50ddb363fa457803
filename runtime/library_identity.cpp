// Walks the PT_NOTE segments of an ELF file, or of a loaded one, for NT_GNU_BUILD_ID. Every offset and size comes from
// a file that may be anything, so each is bounded before it is used.
#include "runtime/library_identity.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "cache/digest.h"
#include "cache/shared_object.h"

namespace jitconv::runtime {
namespace {

class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) error_ = errno;
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// errno of opening it, or 0.
  int error() const { return error_; }

  bool read(std::uint64_t offset, void* data, std::size_t size) const {
    char* to = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::pread(descriptor_, to, size, static_cast<off_t>(offset));
      if (got <= 0) return false;
      to += got;
      offset += static_cast<std::uint64_t>(got);
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  std::uint64_t size() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size)
                                                                         : 0;
  }

 private:
  int descriptor_;
  int error_ = 0;
};

constexpr std::size_t kLongestNotes = 64 * 1024;

std::size_t align4(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

std::string build_id_in(const std::vector<char>& notes) {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const std::size_t name = at + sizeof(note);
    const std::size_t value = name + align4(note.n_namesz);
    const std::size_t end = value + align4(note.n_descsz);
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      static constexpr char kDigits[] = "0123456789abcdef";
      std::string hex;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        const auto byte = static_cast<unsigned char>(notes[value + i]);
        hex += kDigits[byte >> 4];
        hex += kDigits[byte & 15];
      }
      return hex;
    }
    at = end;
  }
  return {};
}

std::string whole_file_identity(const File& file) {
  std::string bytes(file.size(), '\0');
  if (!file.read(0, bytes.data(), bytes.size())) return {};
  return std::to_string(bytes.size()) + "-" + cache::to_hex(cache::sha256(bytes));
}

}  // namespace

std::string library_identity(const std::string& path) {
  const File file(path);
  Elf64_Ehdr header;
  if (file.size() < sizeof(header) || !file.read(0, &header, sizeof(header))) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return {};
  }
  for (unsigned i = 0; header.e_phentsize == sizeof(Elf64_Phdr) && i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file.read(header.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) break;
    if (segment.p_type != PT_NOTE || segment.p_filesz > kLongestNotes) continue;
    std::vector<char> notes(segment.p_filesz);
    if (!file.read(segment.p_offset, notes.data(), notes.size())) continue;
    const std::string id = build_id_in(notes);
    if (!id.empty()) return id;
  }
  return whole_file_identity(file);
}

std::string library_defect(const std::string& path) {
  const File file(path);
  if (file.error() != 0) return "it cannot be opened: " + std::generic_category().message(file.error());
  return cache::defect_of_shared_object(
      file.size(), [&file](std::uint64_t offset, void* to, std::size_t size) { return file.read(offset, to, size); });
}

std::string loaded_build_id(const void* symbol) {
  struct Search {
    std::uintptr_t address;
    dl_phdr_info found;
  } search{reinterpret_cast<std::uintptr_t>(symbol), {}};
  const auto look = [](dl_phdr_info* info, std::size_t, void* into) {  // throws nothing: the C library would abort
    auto& wanted = *static_cast<Search*>(into);
    const auto first = info->dlpi_phdr, last = first + info->dlpi_phnum;
    const bool holds = std::any_of(first, last, [&](const ElfW(Phdr) & segment) {
      return segment.p_type == PT_LOAD && wanted.address - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz;
    });
    if (holds) wanted.found = *info;
    return holds ? 1 : 0;
  };
  dl_iterate_phdr(look, &search);
  std::string id;
  for (unsigned i = 0; i < search.found.dlpi_phnum && id.empty(); ++i) {
    const ElfW(Phdr)& segment = search.found.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* const notes = reinterpret_cast<const char*>(search.found.dlpi_addr + segment.p_vaddr);
    id = build_id_in({notes, notes + segment.p_memsz});
  }
  return id;
}

}  // namespace jitconv::runtime
