# Script mode: cmake -DOUTPUT=file.cpp -DROOT=... -DTEMPLATES=a;b -DGENERATOR=c;d -P embed.cmake. Paths are relative to
# ROOT, in sorted order. See EmbedTemplates.cmake, which runs it. The file it writes depends on their contents only.
cmake_minimum_required(VERSION 3.22)

set(sums "")
foreach(path IN LISTS TEMPLATES GENERATOR)
  file(SHA256 ${ROOT}/${path} sum)
  string(APPEND sums "${path} ${sum}\n")
endforeach()
string(SHA256 fingerprint "${sums}")

set(table "")
foreach(path IN LISTS TEMPLATES)
  file(READ ${ROOT}/${path} text)
  string(FIND "${text}" ")jitconv\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${path} contains the raw-string delimiter )jitconv\"")
  endif()
  string(REGEX REPLACE "^templates/" "" name "${path}")
  string(APPEND table "    {\"${name}\", R\"jitconv(${text})jitconv\"},\n")
endforeach()

file(WRITE ${OUTPUT} "// Written by cmake/embed.cmake.
#include \"codegen/template_text.h\"

namespace jitconv::codegen {

const std::vector<EmbeddedFile>& embedded_files() {
  static const std::vector<EmbeddedFile> files = {
${table}  };
  return files;
}

std::string_view generator_fingerprint() { return \"${fingerprint}\"; }

}  // namespace jitconv::codegen
")
