# Script mode: cmake -DNM=... -DLIBRARY=... -P check_exports.cmake. Fails if the library exports anything but jitconv's
# own interface, or lacks a part of it.
execute_process(COMMAND ${NM} -DC --defined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" symbols "${symbols}")
set(count 0)
foreach(symbol IN LISTS symbols)
  if(symbol MATCHES "^(jitconv_|jitconv::|(typeinfo|typeinfo name|vtable) for jitconv::)")
    math(EXPR count "${count} + 1")
  elseif(NOT symbol STREQUAL "")
    message(SEND_ERROR "exported by mistake: ${symbol}")
  endif()
  if(symbol MATCHES "jitconv::(codegen|cache|runtime|detail)::")
    message(SEND_ERROR "internal, but exported: ${symbol}")
  endif()
endforeach()
foreach(expected "jitconv_compile " "jitconv::compile" "jitconv::Kernel::launch" "jitconv::parse_target"
                 "jitconv::validate" "typeinfo for jitconv::CompileError")
  if(NOT "${symbols}" MATCHES "(^|;)${expected}")
    message(SEND_ERROR "not exported: ${expected}")
  endif()
endforeach()
message(STATUS "${count} symbols")
