# Finds the libraries jitconv is built from and wraps them as jitconv::fmt and jitconv::llvm_support, linked statically:
# a binary built here runs on any distribution with the same or a newer glibc.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED CONFIG)
find_package(LLVM REQUIRED CONFIG)

add_library(jitconv_llvm_support INTERFACE)
add_library(jitconv::llvm_support ALIAS jitconv_llvm_support)
target_include_directories(jitconv_llvm_support SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(jitconv_llvm_support INTERFACE ${LLVM_DEFINITIONS_LIST})
target_link_libraries(jitconv_llvm_support INTERFACE LLVMSupport)
