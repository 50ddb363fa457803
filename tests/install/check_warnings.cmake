# Script mode: configures the release preset as users do and as CI does, and looks for -Werror among the flags: users'
# builds must not stop at a warning, CI's must. -DSOURCE=repository -DWORK=scratch folder -DOPTIONS=for cmake
function(configure werror)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${werror} ${CMAKE_COMMAND} --preset release -B ${WORK} ${OPTIONS}
    -DJITCONV_BUILD_TESTS=OFF WORKING_DIRECTORY ${SOURCE} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${WORK}/compile_commands.json with_werror REGEX "-Werror.*jitconv_runtime.dir")
  set(with_werror "${with_werror}" PARENT_SCOPE)
endfunction()

configure(--unset=JITCONV_WERROR)
if(with_werror)
  message(SEND_ERROR "a user's build stops at a warning: ${with_werror}")
endif()
configure(JITCONV_WERROR=ON)
if(NOT with_werror)
  message(SEND_ERROR "CI's build does not stop at a warning")
endif()
