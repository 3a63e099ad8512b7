# Writes the definition of kCommit (commit.h) into OUTPUT, unless OUTPUT has it already. SOURCE is the root of the
# project. Run with cmake -P at every build.
set(commit "")
if(EXISTS ${SOURCE}/.git)  # else a checkout that the project's sources only lie in would answer
  execute_process(COMMAND git describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
endif()
if(failed OR commit STREQUAL "")
  set(commit unknown)
endif()
set(text "#include \"tests/protocol_sim/commit.h\"\n\nnamespace gleaner::sim {\nconst char* const kCommit = \"${commit}\";\n}\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
