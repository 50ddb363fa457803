# Script mode: installs a build into an empty folder, moves that folder, then configures, builds and runs consumer/ with
# nothing but it, and compiles its C program with the flags of pkg-config. -DBUILD=build folder -DWORK=scratch folder
# -DCONSUMER=consumer/ -DGENERATOR=... -DC=... -DCXX=... -DLIBDIR=lib -DPKG_CONFIG=program, or empty to leave that out
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
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
foreach(text LICENSE licenses/LLVM.txt licenses/fmt.txt licenses/ncurses.txt)
  if(NOT EXISTS ${WORK}/moved/share/doc/jitconv/${text})
    message(FATAL_ERROR "not installed: share/doc/jitconv/${text}")
  endif()
endforeach()
foreach(program dump run cache)
  if(EXISTS ${WORK}/moved/bin/jitconv-${program} AND NOT EXISTS ${WORK}/moved/share/man/man1/jitconv-${program}.1)
    message(FATAL_ERROR "not installed: share/man/man1/jitconv-${program}.1")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_PREFIX_PATH=${WORK}/moved -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/from_c)
run(${WORK}/build/from_cpp)

if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_LIBDIR} ${WORK}/moved/${LIBDIR}/pkgconfig)
  run(${PKG_CONFIG} --cflags --libs "jitconv >= 0.1")
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${C} -std=c99 ${CONSUMER}/from_c.c -o ${WORK}/from_c ${flags})
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK}/moved/${LIBDIR} ${WORK}/from_c)
endif()
