# A room is a folder of src/: every x.cc in it, or in a folder of it, is the library, every x_test.cc beside it a test.

# Many files are compiled as one: headers, and what is instantiated from them, are most of a file's time.
# So the names in a room's anonymous namespaces are unique in it; with 0 every file stands alone.
set(GPUMEMPROF_UNITY_FILES 32 CACHE STRING "so many files are compiled as one at most")
function(gpumemprof_unity name)
  if(GPUMEMPROF_UNITY_FILES)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${GPUMEMPROF_UNITY_FILES})
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # means: not in the main file
  endif()
endfunction()

# COLD: files whose path in the room matches are not hot; with -Og they compile in two thirds of the time. The wheel has
# -Os, a fifth smaller in all.
set(GPUMEMPROF_COLD -Og CACHE STRING "how files that are not hot are compiled")
function(gpumemprof_room name)
  cmake_parse_arguments(ROOM "" "COLD" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src/${name} src/${name}/*.cc src/${name}/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ROOM_LINK})
    return()
  endif()
  if(ROOM_COLD)
    set(cold ${sources})
    list(FILTER cold INCLUDE REGEX ${ROOM_COLD})
    list(FILTER sources EXCLUDE REGEX ${ROOM_COLD})
    list(TRANSFORM cold PREPEND src/${name}/)
    add_library(${name}_cold OBJECT ${cold})
    gpumemprof_unity(${name}_cold)
    target_compile_options(${name}_cold PRIVATE ${GPUMEMPROF_COLD})
    target_link_libraries(${name}_cold PRIVATE ${ROOM_LINK})
    set(cold $<TARGET_OBJECTS:${name}_cold>)
  endif()
  list(TRANSFORM sources PREPEND src/${name}/)
  add_library(${name} STATIC ${sources} ${cold})
  gpumemprof_unity(${name})
  target_link_libraries(${name} PUBLIC ${ROOM_LINK})
endfunction()

function(gpumemprof_unit_tests)
  find_package(GTest REQUIRED)
  file(GLOB tests CONFIGURE_DEPENDS src/*/*_test.cc src/*/*/*_test.cc)
  add_executable(unit_tests ${tests})
  gpumemprof_unity(unit_tests)
  if(GPUMEMPROF_UNITY_FILES)
    set_target_properties(unit_tests PROPERTIES UNITY_BUILD_BATCH_SIZE 8)  # their names are unique among so many
  endif()
  # A third of all objects, and none of them is hot: they compile faster so.
  target_compile_options(unit_tests PRIVATE -Og)
  target_link_libraries(unit_tests PRIVATE serve top lake report readers allocator live devices run probe_parts GTest::gtest_main GTest::gmock)
  # Only those that read committed files get the path: the others' objects are the same in every checkout, so that a
  # compiler cache serves a second clone.
  foreach(test IN LISTS tests)
    file(STRINGS ${test} uses REGEX GPUMEMPROF_SOURCE_DIR LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${test} APPEND PROPERTY COMPILE_DEFINITIONS GPUMEMPROF_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    endif()
    file(STRINGS ${test} uses REGEX GPUMEMPROF_FAKES LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${test} APPEND PROPERTY COMPILE_DEFINITIONS
        GPUMEMPROF_FAKES="${CMAKE_BINARY_DIR}/tests/fakes" GPUMEMPROF_BOARDS="${CMAKE_SOURCE_DIR}/tests/fakes/nvml/boards")
    endif()
  endforeach()
  add_dependencies(unit_tests fake_nvml)
  # A few processes with every eighth test each: one a test took longer to start than to run.
  set(shards 8)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME unit_tests_${shard}_of_${shards} COMMAND unit_tests --gtest_brief=1)
    set_tests_properties(unit_tests_${shard}_of_${shards} PROPERTIES LABELS unit
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
