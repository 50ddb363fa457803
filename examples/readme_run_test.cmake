# Script mode: cmake -DPROGRAM=readme_example [-DARGUMENT=sm_90a] -P readme_run_test.cmake
# Runs the README's program as README describes it. Without ARGUMENT a machine without a driver (6) or without a GPU (7)
# is a documented end, with one message on stderr and nothing on stdout.
cmake_minimum_required(VERSION 3.22)

execute_process(COMMAND ${PROGRAM} ${ARGUMENT} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)

if(NOT ARGUMENT AND (status EQUAL 6 OR status EQUAL 7))
  if(errors STREQUAL "" OR NOT output STREQUAL "")
    message(FATAL_ERROR "exit ${status} without a message; stdout '${output}', stderr '${errors}'")
  endif()
  message(STATUS "no GPU here, and it says so: ${errors}")
  return()
endif()

if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit ${status}: ${errors}")
endif()
if(NOT output MATCHES "__global__" OR NOT output MATCHES "jitconv_fwd" OR NOT output MATCHES "direct")
  message(FATAL_ERROR "neither kernel source nor explanation in:\n${output}")
endif()
