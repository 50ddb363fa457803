// Which functions templates/device/* defines, found in their text: the list that the conformance suite has to cover.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitconv::test {

/// The text without comments, every run of white space as one space: equal for texts that compile to the same.
std::string without_comments(std::string_view text);

/// Names of the functions that `text` marks __device__, in order; a template counts once.
std::vector<std::string> device_functions(std::string_view text);

/// "copy_async.cuh: copy_to_shared" for every function of every file in templates/device, and "vector.cuh" for a file
/// that defines types only.
std::vector<std::string> all_device_functions();

}  // namespace jitconv::test
