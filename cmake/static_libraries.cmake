# Debian's packages hold each library as an archive and as a shared object, and their CMake files name the shared
# object. The command must run on a machine that has neither, so it links the archives; the Python module links the
# shared objects, since Debian's archives are not position independent enough for a library that is loaded at run time.

# Sets `result` to the archives of `target` and of all that it needs, those that there are.
function(gpumemprof_archives_of target result)
  set(todo ${target})
  set(seen "")
  set(archives "")
  while(todo)
    list(POP_FRONT todo next)
    if(NOT TARGET ${next} OR next IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${next})
    get_target_property(configurations ${next} IMPORTED_CONFIGURATIONS)
    foreach(configuration IN LISTS configurations)
      get_target_property(location ${next} IMPORTED_LOCATION_${configuration})
      if(location)
        string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${location}")
        if(EXISTS "${archive}" AND NOT archive IN_LIST archives)
          list(APPEND archives "${archive}")
        endif()
      endif()
    endforeach()
    get_target_property(needed ${next} INTERFACE_LINK_LIBRARIES)
    if(needed)
      list(APPEND todo ${needed})
    endif()
  endwhile()
  set(${result} "${archives}" PARENT_SCOPE)
endfunction()

# Makes the library `name`, which stands for `target`: its archives in programs, itself in what is loaded at run time
# or where it has no archives.
function(gpumemprof_prefer_archive name target)
  gpumemprof_archives_of(${target} archives)
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE
                             $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
  if(NOT archives)
    target_link_libraries(${name} INTERFACE ${target})
    return()
  endif()
  set(program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  # Archives of one package need each other in both directions: a group lets the linker go round.
  target_link_libraries(${name} INTERFACE
    "$<${program}:-Wl,--start-group;${archives};-Wl,--end-group>" "$<$<NOT:${program}>:${target}>")
endfunction()

# The same for a library that has no CMake target: the archive in programs, else the shared object.
function(gpumemprof_prefer_archive_file name archive shared)
  add_library(${name} INTERFACE)
  set(program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  target_link_libraries(${name} INTERFACE "$<IF:${program},${archive},${shared}>")
endfunction()
