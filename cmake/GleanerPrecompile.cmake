# Precompiles the common headers, which take most of a source file's compile time, once for each kind of source:
#   library  libraries and programs
#   json     libraries most of whose sources include nlohmann/json.hpp, which costs the other sources 0.3 s each
#   test     tests, which are not optimised
# All targets of a kind must have the same compiler flags. A source file with other flags sets SKIP_PRECOMPILE_HEADERS.
option(GLEANER_PRECOMPILE "Precompile common headers; OFF finds sources that lack an #include" ON)

set(precompiled_headers
    <algorithm> <array> <atomic> <cerrno> <cmath> <cstdint> <cstdlib> <cstring> <deque> <fstream> <functional> <map>
    <memory> <optional> <span> <string> <thread> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/synchronization/mutex.h>
    <absl/time/clock.h> <absl/time/time.h>)

# Some third-party libraries add -pthread to the targets that link them. A precompiled header requires the same flags in
# all targets that reuse it, so all targets get -pthread, and programs get -fPIC as libraries do.
add_compile_options(-pthread)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)

if(GLEANER_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With a precompiled <string>, gcc 12 loses the information that std::string is in a system header, and reports false
  # positives inside it.
  target_compile_options(gleaner_warnings INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                                    -Wno-stringop-overread)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # With -include, clang finds a precompiled header beside the header, as gcc does. CMake's own options for clang
  # contain absolute paths, which ccache cannot make relative.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
endif()

# gleaner_precompiled_headers(KIND [OPTIONS compiler options...] [HEADERS more headers...]): precompiles the headers of
# one kind of source.
function(gleaner_precompiled_headers kind)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS" ${ARGN})
  if(NOT GLEANER_PRECOMPILE)
    return()
  endif()
  set(target gleaner_precompiled_${kind})
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc "")
  add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc)
  target_compile_options(${target} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${target} PRIVATE ${precompiled_headers} ${ARG_HEADERS})
  if(GLEANER_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    gleaner_checksum_precompiled(${target})
  endif()
endfunction()

# clang's precompiled header contains the path of its folder and cannot be used at another path. So each build folder
# makes its own, and ccache compares a checksum of the header's text (pch_external_checksum) in place of its bytes.
function(gleaner_checksum_precompiled target)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
  set(header CMakeFiles/${target}.dir/cmake_pch.hxx)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}")
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/${header}.pch.sum
    DEPENDS ${CMAKE_BINARY_DIR}/${header}.pch
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -std=c++20 $<TARGET_PROPERTY:${target},COMPILE_OPTIONS> -w
            -x c++ -E -dD ${header} | sha256sum > ${header}.pch.sum
    COMMAND_EXPAND_LISTS)
  add_custom_target(${target}_checksum DEPENDS ${CMAKE_BINARY_DIR}/${header}.pch.sum)
endfunction()

gleaner_precompiled_headers(library OPTIONS ${gleaner_library_options})
gleaner_precompiled_headers(json OPTIONS ${gleaner_library_options} HEADERS <nlohmann/json.hpp>)
if(GLEANER_TESTS)
  gleaner_precompiled_headers(test OPTIONS ${gleaner_test_options} HEADERS <gmock/gmock.h> <gtest/gtest.h>)
  if(TARGET gleaner_precompiled_test)
    target_link_libraries(gleaner_precompiled_test PRIVATE GTest::gmock)
  endif()
endif()

# gleaner_precompile(TARGET KIND): makes the target use the precompiled headers of its kind.
function(gleaner_precompile target kind)
  if(GLEANER_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM gleaner_precompiled_${kind})
    if(TARGET gleaner_precompiled_${kind}_checksum)
      add_dependencies(${target} gleaner_precompiled_${kind}_checksum)
    endif()
  endif()
endfunction()
