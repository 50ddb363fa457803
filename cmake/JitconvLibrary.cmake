# jitconv_compile_options(target): warnings and sanitizers, the same for every target of this project.
# jitconv_library(name SOURCES ... LINK ... PRIVATE_LINK ...): the static library of one folder. It sees the repository
# root and include/ and links only what it names.
function(jitconv_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # wrong about std::string, gcc.gnu.org/PR105651
  endif()
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The warning takes sources that are compiled together for headers.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  if(JITCONV_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(JITCONV_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${JITCONV_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # with sanitizers g++ sees paths that do not exist
    target_link_options(${target} PUBLIC -fsanitize=${JITCONV_SANITIZE})
  endif()
endfunction()

function(jitconv_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  jitconv_compile_options(${name})
endfunction()
