# Script mode, run by EmbedFiles.cmake, which says what it writes. Paths are relative to ROOT, in sorted order. The file
# it writes depends on their contents only.
cmake_minimum_required(VERSION 3.22)

set(sums "")
foreach(path IN LISTS FILES FINGERPRINT_FILES)
  file(SHA256 ${ROOT}/${path} sum)
  string(APPEND sums "${path} ${sum}\n")
endforeach()
string(SHA256 fingerprint "${sums}")

set(table "")
foreach(path IN LISTS FILES)
  file(READ ${ROOT}/${path} text)
  string(FIND "${text}" ")jitconv\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${path} contains the raw-string delimiter )jitconv\"")
  endif()
  string(REGEX REPLACE "^${FOLDER}/" "" name "${path}")
  string(APPEND table "    {\"${name}\", R\"jitconv(${text})jitconv\"},\n")
endforeach()

file(WRITE ${OUTPUT} "// Written by cmake/embed.cmake.
#include \"${HEADER}\"

namespace jitconv::${NAMESPACE} {

const std::vector<codegen::EmbeddedFile>& embedded_files() {
  // Never destroyed: static objects of the program may compile while they are destroyed.
  static const auto& files = *new std::vector<codegen::EmbeddedFile>{
${table}  };
  return files;
}

std::string_view ${FINGERPRINT}() { return \"${fingerprint}\"; }

}  // namespace jitconv::${NAMESPACE}
")
