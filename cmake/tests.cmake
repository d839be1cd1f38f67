# The C++ tests: one program of all rooms, which takes GoogleTest's flags. ctest runs it in parts, side by side.
# SPDX-License-Identifier: Apache-2.0

# What is installed, else what tools/native.py has unpacked there.
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  find_package(GTest QUIET CONFIG PATHS ${CMAKE_BINARY_DIR}/../googletest/usr NO_DEFAULT_PATH)
endif()
set(TFR_GOOGLETEST ON CACHE INTERNAL "whether GoogleTest has been found")
if(NOT GTest_FOUND)
  set(TFR_GOOGLETEST OFF CACHE INTERNAL "")
  # Fails, and looks again the next time.
  add_custom_target(cc_tests
    COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_BINARY_DIR}/configured
    COMMAND ${CMAKE_COMMAND} -E echo "tensorflow_recursion: the C++ tests need GoogleTest: apt-get install libgtest-dev"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  add_test(NAME cc_tests COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target cc_tests)
  return()
endif()

# The thread sanitizer cannot see into TensorFlow's thread pools, on which most tests of kernels run, and takes what they
# hand on for races. The tests of partitions bring threads of their own.
if(TFR_SANITIZER STREQUAL thread)
  set(with_own_threads ${test_sources})
  list(FILTER with_own_threads INCLUDE REGEX "/tests/cc/kernels/(dead_inputs|partition)_test.cc")
  list(FILTER test_sources EXCLUDE REGEX /tests/cc/kernels/)
  list(APPEND test_sources ${with_own_threads})
endif()

# The rooms come first: what they and the tests have in common, such as inline functions, is taken from the first.
add_executable(cc_tests EXCLUDE_FROM_ALL $<TARGET_OBJECTS:rooms> ${test_sources})
target_link_libraries(cc_tests PRIVATE tensorflow_kernels tensorflow_framework our_flags GTest::gtest_main)
set_target_properties(cc_tests PROPERTIES BUILD_RPATH ${TENSORFLOW_LIBRARY_DIR})
if(TFR_PRECOMPILE)
  target_precompile_headers(cc_tests REUSE_FROM rooms)
endif()
if(NOT TFR_SANITIZER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Optimizing the tests themselves would take more than half of the time that they take to compile. (The flag -O0 would
  # ask for precompiled headers of its own.)
  set_target_properties(cc_tests PROPERTIES UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC optimize(\"O0\")")
  target_compile_options(cc_tests PRIVATE --param=ggc-min-heapsize=1000000)  # collect garbage less often, in kB
endif()
tfr_unity(cc_tests ${TFR_UNITY_TEST_FILES} ${test_sources})

set(suppressions ${CMAKE_SOURCE_DIR}/tools)
set(environment
    TF_CPP_MIN_LOG_LEVEL=2
    "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1"
    "LSAN_OPTIONS=suppressions=${suppressions}/leaks.supp:print_suppressions=0"
    UBSAN_OPTIONS=print_stacktrace=1
    "TSAN_OPTIONS=suppressions=${suppressions}/races.supp:print_suppressions=0:history_size=4")
set(parts 8)
foreach(part RANGE 1 ${parts})
  math(EXPR index "${part} - 1")
  add_test(NAME cc_tests.${part} COMMAND cc_tests --gtest_brief=1)
  set_tests_properties(cc_tests.${part} PROPERTIES TIMEOUT 1800
    ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${index}")
endforeach()
