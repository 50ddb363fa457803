# Script mode: cmake "-DPROGRAM=program;argument;..." [-DON_HOST=1] -P run_test.cmake
# Runs one of the examples and reads the line that it ends with. On the GPU a machine without a driver (6) or without a
# GPU (7) is a documented end, too: one message on stderr and nothing on stdout.
cmake_minimum_required(VERSION 3.22)

execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)

if(NOT ON_HOST AND (status EQUAL 6 OR status EQUAL 7))
  if(errors STREQUAL "" OR NOT output STREQUAL "")
    message(FATAL_ERROR "exit ${status} without a message; stdout '${output}', stderr '${errors}'")
  endif()
  message(STATUS "no GPU here, and it says so: ${errors}")
  return()
endif()

if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit ${status}: ${errors}\n${output}")
endif()
if(NOT output MATCHES "\n[0-9.]+ ms, [0-9.e+-]+ TFLOP/s, 0 of [0-9]+ sampled outputs wrong\n$")
  message(FATAL_ERROR "no time, rate and check at the end of:\n${output}")
endif()
if(ON_HOST AND NOT output MATCHES "family: wgmma")
  message(FATAL_ERROR "not a tensor-core kernel:\n${output}")
endif()
message(STATUS "${output}")
