# Script mode: installs a build into an empty folder, moves that folder, then configures, builds and runs consumer/ with
# nothing but it. -DBUILD=build folder -DWORK=scratch folder -DCONSUMER=consumer/ -DGENERATOR=... -DC=... -DCXX=...
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/moved)

file(GLOB_RECURSE headers RELATIVE ${WORK}/moved/include ${WORK}/moved/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^jitconv/[a-z]+\\.(h|hpp)$")
    message(FATAL_ERROR "installed by mistake: include/${header}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_PREFIX_PATH=${WORK}/moved -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/from_c)
run(${WORK}/build/from_cpp)
