# Compiler settings of all targets. CMakePresets.json has presets for the options.
option(GLEANER_TESTS "Build the tests" ON)
option(GLEANER_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
set(GLEANER_SANITIZE "" CACHE STRING "Sanitizers to compile in: empty, address,undefined or thread")

# Batches halve the processor time of a build: headers that are not precompiled, and templates, are compiled once for
# each batch in place of once for each source file. The sanitizer builds compile each file alone, so they find files
# that lack an #include, and clang-tidy sees single files.
option(GLEANER_UNITY "Compile the sources of each target in batches" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(GLEANER_CCACHE ccache)
if(GLEANER_CCACHE)
  # Clones at different paths share the cache (tests/install/ccache_hits): CCACHE_BASEDIR makes the paths in its keys
  # relative, and CCACHE_PCH_EXTSUM takes the checksums of GleanerPrecompile for precompiled headers.
  set(ccache_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1 CCACHE_PCH_EXTSUM=1
                      ${GLEANER_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${ccache_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache_launcher})
endif()

# Debug information names files from the root of the source folder, so that an object from the cache is right in each
# clone.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)

# Targets link gleaner_warnings to enable warnings. Generated code does not link it.
add_library(gleaner_warnings INTERFACE)
target_compile_options(gleaner_warnings INTERFACE -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                                  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(gleaner_warnings INTERFACE -Wthread-safety)
endif()
if(GLEANER_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a batch gcc takes each source for a header, and warns of types in its anonymous namespace.
  target_compile_options(gleaner_warnings INTERFACE -Wno-subobject-linkage)
endif()

# The bits of sums are part of the contract, so the compiler must not contract a multiplication and an addition into a
# fused multiply-add.
add_compile_options(-ffp-contract=off)

# With its default of 128 MB, which precompiled headers fill alone, gcc spends 10 % of its time on garbage collection. A
# heap of 512 MB is never full, and a compilation needs at most a fifth more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=524288)
endif()

if(GLEANER_SANITIZE)
  add_compile_options(-fsanitize=${GLEANER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${GLEANER_SANITIZE})
endif()
if(GLEANER_SANITIZE STREQUAL "thread")
  # Makes absl::Mutex visible to TSan. Every executable links this object and exports its symbols to the shared
  # libraries.
  add_library(gleaner_tsan_sync OBJECT ${CMAKE_SOURCE_DIR}/cmake/tsan/absl_sync.cc)
  set_target_properties(gleaner_tsan_sync PROPERTIES CXX_VISIBILITY_PRESET default)
endif()
# lld links a program in a third of the time of GNU ld. Links take most of a build whose objects come from ccache.
find_program(GLEANER_LLD ld.lld)
if(GLEANER_LLD OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()
set(gleaner_library_options "")
if(GLEANER_FUZZERS)
  # Instruments the libraries, so that the fuzzers see which branches an input reaches.
  set(gleaner_library_options -fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
# Test code takes more than half of the compile time, and -O0 saves 40 % of that with gcc and more with sanitizers. The
# libraries under test stay optimised.
set(gleaner_test_options -O0)
