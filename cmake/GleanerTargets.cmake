# gleaner_batch(TARGET LIST): with GLEANER_UNITY, replaces the target's sources in the list by files that include eight of
# them each. CMake's own batches (UNITY_BUILD) name sources by absolute paths, so ccache would miss them in other clones.
# Generated sources, and those with properties of their own, stay alone; set the properties before the call.
function(gleaner_batch target list)
  if(NOT GLEANER_UNITY)
    return()
  endif()
  set(alone "")
  set(batched "")
  foreach(source ${${list}})
    cmake_path(ABSOLUTE_PATH source)
    set(is_alone OFF)
    foreach(property COMPILE_DEFINITIONS COMPILE_FLAGS COMPILE_OPTIONS INCLUDE_DIRECTORIES SKIP_PRECOMPILE_HEADERS
                     SKIP_UNITY_BUILD_INCLUSION)
      get_source_file_property(value ${source} ${property})
      if(value)
        set(is_alone ON)
      endif()
    endforeach()
    cmake_path(IS_PREFIX CMAKE_CURRENT_BINARY_DIR ${source} is_generated)
    if(is_alone OR is_generated OR NOT source MATCHES "\\.cc$")
      list(APPEND alone ${source})
    else()
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
      list(APPEND batched "#include \"${source}\"\n")
    endif()
  endforeach()
  list(LENGTH batched count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST batched ${first} 8 includes)
    string(CONCAT text ${includes})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${target}_${first}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND alone ${file})
    math(EXPR first "${first} + 8")
  endwhile()
  set(${list} ${alone} PARENT_SCOPE)
endfunction()

# gleaner_library(NAME SOURCES... [DEPENDS targets...] [LINKS third-party...] [JSON])
#   Adds the static library gleaner_NAME, from the sources of one folder. DEPENDS names other gleaner libraries, without
#   the prefix. The folder may include headers only from DEPENDS and LINKS; tests/link checks this. JSON precompiles
#   nlohmann/json.hpp, too; it saves time if most of the sources include it.
function(gleaner_library name)
  cmake_parse_arguments(ARG "JSON" "" "SOURCES;DEPENDS;LINKS" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND gleaner_)
  gleaner_batch(gleaner_${name} ARG_SOURCES)
  add_library(gleaner_${name} STATIC ${ARG_SOURCES})
  target_include_directories(gleaner_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(gleaner_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LINKS} PRIVATE gleaner_warnings)
  target_compile_options(gleaner_${name} PRIVATE ${gleaner_library_options})
  gleaner_precompile_kind(gleaner_${name} "${ARG_JSON}")
  gleaner_record_target(library gleaner_${name} "${ARG_DEPENDS}" "${ARG_LINKS}")
endfunction()

# Makes a library or program use the precompiled headers with or without nlohmann/json.hpp.
function(gleaner_precompile_kind target is_json)
  if(is_json)
    gleaner_precompile(${target} json)
  else()
    gleaner_precompile(${target} library)
  endif()
endfunction()

# Records a target for tests/link, as a line kind|target|folder|depends|links.
function(gleaner_record_target kind name depends links)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE ";" "," depends "${depends}")
  string(REPLACE ";" "," links "${links}")
  set_property(GLOBAL APPEND PROPERTY gleaner_targets "${kind}|${name}|${folder}|${depends}|${links}")
endfunction()

# Adds to an executable the parts that sanitizer builds need.
function(gleaner_add_runtime name)
  if(TARGET gleaner_tsan_sync)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:gleaner_tsan_sync>)
    target_link_libraries(${name} PRIVATE absl::synchronization absl::time)
  endif()
  if(GLEANER_SANITIZE)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)  # C programs need the sanitizer's C++ runtime, too
  endif()
endfunction()

# Builds only the targets that `ctest -L threads` needs, for the TSan stage of scripts/test.
add_custom_target(threaded_tests)

# Seconds after which ctest ends a test that hangs. It is long, so that a test which passes also passes on a busy machine.
# The longest tests have timeouts of their own.
set(gleaner_test_timeout 600)

# Sanitizer options in the environment of every test.
set(gleaner_test_environment
    "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan/suppressions.txt:second_deadlock_stack=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/asan/suppressions.txt:print_suppressions=0")

# gleaner_binary(NAME SOURCES... DEPENDS targets... [LINKS third-party...] [JSON]): adds an executable in bin/, which is
# installed.
function(gleaner_binary name)
  cmake_parse_arguments(ARG "JSON" "" "SOURCES;DEPENDS;LINKS" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND gleaner_)
  gleaner_batch(${name} ARG_SOURCES)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LINKS} gleaner_warnings)
  target_compile_options(${name} PRIVATE ${gleaner_library_options})  # as in the precompiled headers
  gleaner_precompile_kind(${name} "${ARG_JSON}")
  gleaner_add_runtime(${name})
  gleaner_record_target(binary ${name} "${ARG_DEPENDS}" "${ARG_LINKS}")
  add_dependencies(threaded_tests ${name})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# gleaner_test(NAME SOURCES... DEPENDS targets... [LABELS l...] [TIMEOUT s] [OPTIMIZED]): adds one GoogleTest program as
# one ctest entry. OPTIMIZED optimises the test's own code, too, for tests that spend most time in that code.
function(gleaner_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "TIMEOUT" "SOURCES;DEPENDS;LINKS;LABELS;ARGS" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND gleaner_)
  gleaner_batch(${name} ARG_SOURCES)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LINKS} gleaner_test_paths GTest::gmock GTest::gtest_main
                                        gleaner_warnings)
  if(ARG_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${gleaner_library_options})
    gleaner_precompile(${name} library)
  else()
    target_compile_options(${name} PRIVATE ${gleaner_test_options})
    gleaner_precompile(${name} test)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${gleaner_test_timeout})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                                          ENVIRONMENT "${gleaner_test_environment}")
  gleaner_add_runtime(${name})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threaded_tests ${name})
  endif()
endfunction()

# gleaner_fuzzer(NAME SOURCES... DEPENDS targets...): if GLEANER_FUZZERS is on, adds a libFuzzer program, and a test
# that runs it for a bounded time.
function(gleaner_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINKS" ${ARGN})
  if(NOT GLEANER_FUZZERS)
    return()
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND gleaner_)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LINKS} gleaner_warnings)
  add_test(NAME ${name}_smoke COMMAND ${name} -runs=200000 -max_total_time=20 -print_final_stats=1)
  set_tests_properties(${name}_smoke PROPERTIES TIMEOUT ${gleaner_test_timeout} LABELS fuzz
                                                ENVIRONMENT "${gleaner_test_environment}")
endfunction()
