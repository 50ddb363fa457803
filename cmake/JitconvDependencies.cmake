# The libraries jitconv is built from, all linked statically: a binary built here runs on any distribution with the
# same or a newer glibc. Defines jitconv::fmt and jitconv::llvm_support. Their headers are system headers: no compiler
# warns of what they do.
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED CONFIG)

# fmt.cpp knows fmt 9. A later fmt is compiled in every file that formats: slower to build, otherwise the same.
if(fmt_VERSION VERSION_LESS 10)
  add_library(jitconv_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
  target_include_directories(jitconv_fmt SYSTEM PUBLIC
    $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  add_library(jitconv_fmt INTERFACE)
  target_link_libraries(jitconv_fmt INTERFACE fmt::fmt-header-only)
endif()
add_library(jitconv::fmt ALIAS jitconv_fmt)

# LLVM is asked through llvm-config, not find_package(LLVM): its package file also searches for libxml2, libffi, curl,
# terminfo and z3, none of which LLVM Support needs for what jitconv calls.
find_program(LLVM_CONFIG NAMES llvm-config
  llvm-config-14 llvm-config-15 llvm-config-16 llvm-config-17 llvm-config-18 llvm-config-19 llvm-config-20
  DOC "llvm-config of the LLVM to link, 14 or later")
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "llvm-config not found: install llvm-dev, or pass -DLLVM_CONFIG=/path/to/llvm-config")
endif()

function(jitconv_llvm_query result)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

jitconv_llvm_query(llvm_version --version)
jitconv_llvm_query(llvm_includes --includedir)
jitconv_llvm_query(llvm_libraries --libdir)
if(llvm_version VERSION_LESS 14)
  message(FATAL_ERROR "${LLVM_CONFIG} is LLVM ${llvm_version}; jitconv needs 14 or later")
endif()

add_library(jitconv_llvm_support INTERFACE)
add_library(jitconv::llvm_support ALIAS jitconv_llvm_support)
target_include_directories(jitconv_llvm_support SYSTEM INTERFACE ${llvm_includes})
foreach(archive LLVMSupport LLVMDemangle)
  set(path ${llvm_libraries}/lib${archive}.a)
  if(NOT EXISTS ${path})
    message(FATAL_ERROR "${path} not found: install the LLVM development package (llvm-dev)")
  endif()
  target_link_libraries(jitconv_llvm_support INTERFACE ${path})
endforeach()

# What LLVM Support refers to besides glibc: terminfo (does this terminal have colours?), zlib and zstd (compressed
# streams). Static archives come first; a shared library is taken only where there is no archive.
foreach(name tinfo z zstd)
  find_library(JITCONV_${name}_LIBRARY NAMES lib${name}.a ${name})
  mark_as_advanced(JITCONV_${name}_LIBRARY)
  if(JITCONV_${name}_LIBRARY)
    target_link_libraries(jitconv_llvm_support INTERFACE ${JITCONV_${name}_LIBRARY})
  endif()
endforeach()
target_link_libraries(jitconv_llvm_support INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
message(STATUS "LLVM Support ${llvm_version} in ${llvm_libraries}, fmt ${fmt_VERSION}")
