# jitconv_embed(OUTPUT HEADER h NAMESPACE n FOLDER f FINGERPRINT name FILES glob... FINGERPRINT_FILES glob...):
# writes OUTPUT, a C++ file that defines in namespace jitconv::n what header h declares,
#   embedded_files()  every file of FILES as a string, named relative to folder f,
#   name()            the SHA-256 over FILES and FINGERPRINT_FILES.
# Runs again whenever one of the files changes, is added or is removed: the file lists are part of the command line, so a
# build tool sees a removal too.
function(jitconv_embed output)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE;FOLDER;FINGERPRINT" "FILES;FINGERPRINT_FILES" ${ARGN})
  foreach(list FILES FINGERPRINT_FILES)
    list(TRANSFORM ARG_${list} PREPEND ${PROJECT_SOURCE_DIR}/)
    file(GLOB ${list} CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${ARG_${list}})
    list(SORT ${list})
    list(TRANSFORM ${list} PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE ${list}_paths)
  endforeach()
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} -DHEADER=${ARG_HEADER}
            -DNAMESPACE=${ARG_NAMESPACE} -DFOLDER=${ARG_FOLDER} -DFINGERPRINT=${ARG_FINGERPRINT} "-DFILES=${FILES}"
            "-DFINGERPRINT_FILES=${FINGERPRINT_FILES}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${FILES_paths} ${FINGERPRINT_FILES_paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${ARG_FOLDER}" VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
