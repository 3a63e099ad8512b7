# Precompiles the common headers, which take most of a source file's compile time, once for each kind of target:
# library, program, test. All targets of a kind must have the same compiler flags. A source file with other flags
# sets SKIP_PRECOMPILE_HEADERS.
option(GLEANER_PRECOMPILE "Precompile common headers; OFF finds sources that lack an #include" ON)

set(precompiled_headers
    <algorithm> <array> <atomic> <cerrno> <cmath> <cstdint> <cstdlib> <cstring> <deque> <fstream> <functional> <map>
    <memory> <optional> <span> <string> <thread> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/synchronization/mutex.h>
    <absl/time/clock.h> <absl/time/time.h>)

# Some third-party libraries add -pthread to the targets that link them. A precompiled header requires the same flags in
# all targets that reuse it, so all targets get -pthread.
add_compile_options(-pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Without this option the precompiled header contains a timestamp, and ccache misses after each rebuild of it.
  add_compile_options("SHELL:$<$<COMPILE_LANGUAGE:CXX>:-Xclang -fno-pch-timestamp>")
endif()

if(GLEANER_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With a precompiled <string>, gcc 12 loses the information that std::string is in a system header, and reports false
  # positives inside it.
  target_compile_options(gleaner_warnings INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                                    -Wno-stringop-overread)
endif()

function(gleaner_precompiled_headers kind)
  if(GLEANER_PRECOMPILE)
    file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc "")
    add_library(gleaner_precompiled_${kind} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${kind}.cc)
    target_precompile_headers(gleaner_precompiled_${kind} PRIVATE ${precompiled_headers} ${ARGN})
  endif()
endfunction()

gleaner_precompiled_headers(library)
gleaner_precompiled_headers(program <nlohmann/json.hpp>)
if(GLEANER_TESTS)
  gleaner_precompiled_headers(test <gmock/gmock.h> <gtest/gtest.h>)
endif()
foreach(kind program test)
  if(TARGET gleaner_precompiled_${kind})
    set_target_properties(gleaner_precompiled_${kind} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(gleaner_precompiled_${kind} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})  # as in executables
  endif()
endforeach()
if(TARGET gleaner_precompiled_test)
  target_compile_options(gleaner_precompiled_test PRIVATE ${gleaner_test_options})
  target_link_libraries(gleaner_precompiled_test PRIVATE GTest::gmock)
endif()
if(TARGET gleaner_precompiled_library)
  target_compile_options(gleaner_precompiled_library PRIVATE ${gleaner_library_options})
endif()

# gleaner_precompile(TARGET KIND): makes the target use the precompiled headers of its kind.
function(gleaner_precompile target kind)
  if(GLEANER_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM gleaner_precompiled_${kind})
  endif()
endfunction()
