# _native and _marks for every Python whose headers lie in GPUMEMPROF_PYTHONS, in a folder named as its version: what
# scripts/wheel puts into one wheel. Each is one file: the C++ library is inside, and nothing but PyInit_… is exported,
# so nothing of it meets PyTorch's. _marks is one for each version, as it reads what only that version's headers tell.
file(GLOB versions RELATIVE ${GPUMEMPROF_PYTHONS} ${GPUMEMPROF_PYTHONS}/3.*)
file(GLOB marks CONFIGURE_DEPENDS native/marks/*.cc)
file(GLOB natives CONFIGURE_DEPENDS native/*.cc)
list(APPEND natives ${GPUMEMPROF_NANOBIND}/src/nb_combined.cpp)
set_source_files_properties(${GPUMEMPROF_NANOBIND}/src/nb_combined.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

function(gpumemprof_compile_module target)
  gpumemprof_unity(${target})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(${target} PRIVATE -fvisibility=hidden -fno-strict-aliasing -Os)
endfunction()

function(gpumemprof_link_module target file name)
  set(exports ${CMAKE_CURRENT_BINARY_DIR}/${name}.exports)
  file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: PyInit_${name}; local: *; };\n")
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections)
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${file}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/modules)
endfunction()

# _native is one file for all, so that the core is in the wheel once for them: the bindings of each version stand side by
# side in it, in namespaces of their own. Those of 3.12 serve every newer one by the stable ABI. What of CPython's
# functions the running one lacks must not keep the file from being loaded, so all references to them are weak.
add_library(_native MODULE native/versions/init.cc)
gpumemprof_link_module(_native _native.abi3.so _native)

foreach(version IN LISTS versions)
  set(headers ${GPUMEMPROF_PYTHONS}/${version})
  string(REPLACE "." "" digits ${version})
  add_library(_marks_${digits} MODULE ${marks})
  gpumemprof_compile_module(_marks_${digits})
  target_include_directories(_marks_${digits} SYSTEM PRIVATE ${headers})
  gpumemprof_link_module(_marks_${digits} _marks.cpython-${digits}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.so _marks)
  if(version VERSION_GREATER 3.12)
    continue()
  endif()
  set(bindings bindings_${digits})
  add_library(${bindings} OBJECT ${natives})
  gpumemprof_compile_module(${bindings})
  target_include_directories(${bindings} SYSTEM PRIVATE ${headers} ${GPUMEMPROF_NANOBIND}/include ${GPUMEMPROF_NANOBIND}/ext/robin_map/include)
  target_compile_definitions(${bindings} PRIVATE NB_COMPACT_ASSERTIONS GPUMEMPROF_VERSION="${PROJECT_VERSION}"
    nanobind=nanobind_${digits} python=python_${digits} PyInit__native=gpumemprof_init_${digits})
  target_compile_options(${bindings} PRIVATE "-DPyAPI_FUNC(RTYPE)=__attribute__((weak)) RTYPE" "-DPyAPI_DATA(RTYPE)=extern __attribute__((weak)) RTYPE")
  if(version VERSION_EQUAL 3.12)
    target_compile_definitions(${bindings} PRIVATE Py_LIMITED_API=0x030C0000)
  endif()
  target_link_libraries(${bindings} PRIVATE lake page report estimate analysis readers recording telemetry devices)
  target_link_libraries(_native PRIVATE ${bindings})
endforeach()
target_link_libraries(_native PRIVATE lake page report estimate analysis readers recording telemetry devices)
