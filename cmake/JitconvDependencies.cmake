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

# LLVM is, in this order, the one in JITCONV_LLVM_ROOT; the one of llvm-config, if its static libraries are there; the
# one in build/llvm, where ./dev puts the few files of the distribution's package that are needed. find_package(LLVM) is
# not used: it also searches for libxml2, libffi, curl and z3, none of which LLVM Support needs for what jitconv calls.
set(JITCONV_LLVM_ROOT "" CACHE PATH "LLVM to link, 14 or later: a folder with include/llvm and lib/libLLVMSupport.a")
find_program(LLVM_CONFIG NAMES llvm-config
  llvm-config-14 llvm-config-15 llvm-config-16 llvm-config-17 llvm-config-18 llvm-config-19 llvm-config-20
  DOC "llvm-config of the LLVM to link, 14 or later")

set(llvm_includes ${PROJECT_SOURCE_DIR}/build/llvm/include)
set(llvm_libraries ${PROJECT_SOURCE_DIR}/build/llvm/lib)
if(JITCONV_LLVM_ROOT)
  set(llvm_includes ${JITCONV_LLVM_ROOT}/include)
  set(llvm_libraries ${JITCONV_LLVM_ROOT}/lib)
elseif(LLVM_CONFIG)
  execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE includes OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${LLVM_CONFIG} --libdir OUTPUT_VARIABLE libraries OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${libraries}/libLLVMSupport.a)
    set(llvm_includes ${includes})
    set(llvm_libraries ${libraries})
  endif()
endif()

foreach(file ${llvm_libraries}/libLLVMSupport.a ${llvm_libraries}/libLLVMDemangle.a
        ${llvm_includes}/llvm/Config/llvm-config.h)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "${file} not found. jitconv needs static libraries and headers of LLVM 14 or later: "
      "./dev setup fetches them; or install llvm-dev; or pass -DLLVM_CONFIG=PROGRAM or -DJITCONV_LLVM_ROOT=FOLDER")
  endif()
endforeach()
file(STRINGS ${llvm_includes}/llvm/Config/llvm-config.h llvm_version REGEX "define LLVM_VERSION_STRING ")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" llvm_version "${llvm_version}")
if(llvm_version VERSION_LESS 14)
  message(FATAL_ERROR "${llvm_includes} holds LLVM ${llvm_version}; jitconv needs 14 or later")
endif()

add_library(jitconv_llvm_support INTERFACE)
add_library(jitconv::llvm_support ALIAS jitconv_llvm_support)
target_include_directories(jitconv_llvm_support SYSTEM INTERFACE ${llvm_includes})
target_link_libraries(jitconv_llvm_support INTERFACE
  ${llvm_libraries}/libLLVMSupport.a ${llvm_libraries}/libLLVMDemangle.a)

# CommandLine asks terminfo for the colours of the terminal. The archive comes before the shared library, which a program
# would need at run time. (Support's compression needs zlib and zstd; nothing here refers to it.)
find_library(JITCONV_TINFO_LIBRARY NAMES libtinfo.a tinfo)
mark_as_advanced(JITCONV_TINFO_LIBRARY)
if(JITCONV_TINFO_LIBRARY)
  target_link_libraries(jitconv_llvm_support INTERFACE ${JITCONV_TINFO_LIBRARY})
endif()
target_link_libraries(jitconv_llvm_support INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
message(STATUS "LLVM Support ${llvm_version} in ${llvm_libraries}, fmt ${fmt_VERSION}")
