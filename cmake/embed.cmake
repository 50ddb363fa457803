# Script mode: cmake -DOUTPUT=... -DROOT=... -P embed.cmake. See EmbedTemplates.cmake.
file(GLOB templates RELATIVE ${ROOT} ${ROOT}/templates/*.cu.in ${ROOT}/templates/device/*.cuh)
file(GLOB generator RELATIVE ${ROOT} ${ROOT}/codegen/*.cpp ${ROOT}/codegen/*.h)
list(SORT templates)
list(SORT generator)

set(sums "")
foreach(path ${templates} ${generator})
  file(SHA256 ${ROOT}/${path} sum)
  string(APPEND sums "${path} ${sum}\n")
endforeach()
string(SHA256 fingerprint "${sums}")

set(table "")
foreach(path ${templates})
  file(READ ${ROOT}/${path} text)
  string(REGEX REPLACE "^templates/" "" name ${path})
  string(FIND "${text}" ")jitconv\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${path} contains the raw-string delimiter")
  endif()
  string(APPEND table "    {\"${name}\", R\"jitconv(${text})jitconv\"},\n")
endforeach()

file(WRITE ${OUTPUT}.tmp "// Written by cmake/embed.cmake.
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
file(COPY_FILE ${OUTPUT}.tmp ${OUTPUT} ONLY_IF_DIFFERENT)
file(TOUCH_NOCREATE ${OUTPUT})
