# The page: web/ bundled into one file of HTML, which the room `page` takes into the command (src/page/bundle.cc).
# scripts/setup web installs what it needs: node, and in web/node_modules the bundler and the libraries of the page.
find_program(GPUMEMPROF_NODE NAMES node nodejs HINTS ${CMAKE_SOURCE_DIR}/.venv/bin)

function(gpumemprof_embed_page)
  if(NOT GPUMEMPROF_NODE OR NOT EXISTS ${CMAKE_SOURCE_DIR}/web/node_modules/esbuild)
    message(WARNING "The page is left out of the command: scripts/setup web installs what bundles it.")
    return()
  endif()
  set(page ${CMAKE_BINARY_DIR}/page.html)
  file(GLOB_RECURSE parts CONFIGURE_DEPENDS web/src/*)
  add_custom_command(OUTPUT ${page}
    COMMAND ${GPUMEMPROF_NODE} ${CMAKE_SOURCE_DIR}/web/build.mjs --out ${page}
    DEPENDS ${parts} web/build.mjs web/package-lock.json
    COMMENT "Bundling the page")
  target_sources(page PRIVATE ${page})
  set_source_files_properties(src/page/bundle.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    OBJECT_DEPENDS ${page} COMPILE_DEFINITIONS GPUMEMPROF_PAGE_FILE="${page}")
endfunction()
