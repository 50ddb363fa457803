# cmake --install: libjitconv.so, the headers of include/jitconv, what find_package(jitconv) and pkg-config need, all
# relocatable, and the licences (the programs install themselves in tools/). The static libraries stay behind: they
# would bring LLVM and fmt along.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(jitconv_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/jitconv)
install(TARGETS jitconv EXPORT jitconvTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/jitconv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT jitconvTargets NAMESPACE jitconv:: DESTINATION ${jitconv_package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/jitconvConfig.cmake.in
  ${PROJECT_BINARY_DIR}/jitconvConfig.cmake INSTALL_DESTINATION ${jitconv_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/jitconvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/jitconvConfig.cmake ${PROJECT_BINARY_DIR}/jitconvConfigVersion.cmake
  DESTINATION ${jitconv_package_dir})

# The path is relative, e.g. ../.., or ../../.. where libraries are in lib/x86_64-linux-gnu.
file(RELATIVE_PATH JITCONV_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" JITCONV_PC_TO_PREFIX "${JITCONV_PC_TO_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/jitconv.pc.in ${PROJECT_BINARY_DIR}/jitconv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/jitconv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# jitconv's licence, and those of what is linked statically.
# CMAKE_INSTALL_DOCDIR would be that of a project that adds this one.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/jitconv)
# The photograph is an example's, which is not installed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/jitconv
  PATTERN photograph.txt EXCLUDE)
