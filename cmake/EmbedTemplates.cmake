# jitconv_embed_templates(OUTPUT): writes OUTPUT, a C++ file that holds every file of templates/ as a string and the
# SHA-256 over templates/ and codegen/ (the generator fingerprint). Runs again whenever one of those files changes, is
# added or is removed: the file lists are part of the command line, so a build tool sees a removal too.
function(jitconv_embed_templates output)
  file(GLOB templates CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/templates/*.cu.in ${PROJECT_SOURCE_DIR}/templates/device/*.cuh)
  file(GLOB generator CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/codegen/*.cpp ${PROJECT_SOURCE_DIR}/codegen/*.h)
  list(SORT templates)
  list(SORT generator)
  list(TRANSFORM templates PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE template_paths)
  list(TRANSFORM generator PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE generator_paths)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} "-DTEMPLATES=${templates}"
            "-DGENERATOR=${generator}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${template_paths} ${generator_paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding templates/" VERBATIM)
endfunction()
