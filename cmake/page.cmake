# The page that web/ builds (web/build.mjs writes it into the build folder) becomes a part of the command. Without it the
# command says that it has none.
function(gpumemprof_embed_page)
  file(GLOB built CONFIGURE_DEPENDS ${CMAKE_BINARY_DIR}/page.html)
  if(NOT built)
    return()
  endif()
  set_source_files_properties(src/page/bundle.cc PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON OBJECT_DEPENDS ${built}
    COMPILE_DEFINITIONS GPUMEMPROF_PAGE_FILE="${built}")
endfunction()
