# jitconv_embed_templates(OUTPUT): writes OUTPUT, a C++ file that holds every file of templates/ as a string and the
# SHA-256 over templates/ and codegen/ (the generator fingerprint). Runs again whenever one of those files changes.
function(jitconv_embed_templates output)
  file(GLOB templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/templates/*.cu.in ${PROJECT_SOURCE_DIR}/templates/device/*.cuh)
  file(GLOB generator CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/codegen/*.cpp ${PROJECT_SOURCE_DIR}/codegen/*.h)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${templates} ${generator} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding templates/" VERBATIM)
endfunction()
