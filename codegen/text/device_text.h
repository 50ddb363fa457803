// The text that a kernel has from templates/device/: of the files that it names, the declarations that it uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitconv::codegen {

/// A file of templates/device/ that a kernel uses. Those of multiplications are made for a number of columns.
struct DeviceFile {
  std::string_view name;
  int columns = 0;
  bool operator==(const DeviceFile&) const = default;
};

/// Adds what `files` has not.
void add_files(std::vector<DeviceFile>& files, const std::vector<DeviceFile>& more);

/// A part of a device file: a function, type or constant with the comment before it, or a comment that an empty line
/// sets apart, which is about all declarations up to the next of its kind.
struct Declaration {
  std::string_view text;  ///< without a line break at its end
  std::string_view name;  ///< empty: a comment
  bool after_empty_line = false;
};
std::vector<Declaration> declarations_of(std::string_view file);

/// Texts of the files, one after the other: what is named in `kernels` or in what that needs, and multiplications.
std::string device_text(const std::vector<DeviceFile>& files, std::string_view kernels);

}  // namespace jitconv::codegen
