# The pages of the manual and what shells complete, written by the command itself into share/ of the build folder.
# A command for another machine cannot write them: scripts/assemble_wheel.py takes those of another build then.
function(gpumemprof_shell_files)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    return()
  endif()
  set(share ${CMAKE_BINARY_DIR}/share)
  set(files)
  set(commands)
  foreach(tool gpumemprof tfmemprof)
    foreach(file "manual:man/man1/${tool}.1" "completion bash:bash-completion/completions/${tool}"
                 "completion zsh:zsh/site-functions/_${tool}" "completion fish:fish/vendor_completions.d/${tool}.fish")
      string(REPLACE ":" ";" file ${file})
      list(GET file 0 words)
      list(GET file 1 name)
      separate_arguments(words)
      list(APPEND commands COMMAND ${CMAKE_BINARY_DIR}/names/${tool} ${words} > ${share}/${name})
      list(APPEND files ${share}/${name})
    endforeach()
  endforeach()
  foreach(folder man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
    list(APPEND folders ${share}/${folder})
  endforeach()
  add_custom_command(OUTPUT ${files}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/names ${folders}
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:gpumemprof> ${CMAKE_BINARY_DIR}/names/gpumemprof
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:gpumemprof> ${CMAKE_BINARY_DIR}/names/tfmemprof
    ${commands} DEPENDS gpumemprof VERBATIM COMMENT "Writing the manual and the completion of shells")
  add_custom_target(shell_files ALL DEPENDS ${files})
endfunction()
