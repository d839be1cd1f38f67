# Flags for every file of ours, from cc/flags.bzl, and the precompiled headers.
# SPDX-License-Identifier: Apache-2.0

# Sets `name` to the flags of that list in cc/flags.bzl.
function(tfr_flag_list name)
  file(READ ${CMAKE_SOURCE_DIR}/cc/flags.bzl text)
  string(REGEX MATCH "\n${name} = \\[[^]]*" list "${text}")
  string(REGEX MATCHALL "\n    \"[^\"]+" flags "${list}")
  list(TRANSFORM flags REPLACE "\n    \"" "")
  if(NOT flags)
    message(FATAL_ERROR "cc/flags.bzl: no flags in ${name}")
  endif()
  set(${name} ${flags} PARENT_SCOPE)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cc/flags.bzl)
tfr_flag_list(COPTS)
tfr_flag_list(LINKOPTS)

add_library(our_flags INTERFACE)
target_include_directories(our_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(our_flags INTERFACE ${COPTS})
target_link_options(our_flags INTERFACE ${LINKOPTS})

# The loops over vectors take long, and include no header of TensorFlow: they are compiled while those are precompiled.
set(TFR_LOOPS cc/native/loops.cc)
set_source_files_properties(${TFR_LOOPS} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)

if(TFR_SANITIZER)
  target_compile_options(our_flags INTERFACE -O1 -g1 -fno-omit-frame-pointer -fsanitize=${TFR_SANITIZER}
                         -fno-sanitize-recover=all)
  target_link_options(our_flags INTERFACE -fsanitize=${TFR_SANITIZER} -Wl,-z,undefs)
  if(TFR_SANITIZER MATCHES undefined)
    # With these g++ takes no comparison of a function with null for a constant, and Abseil's headers need one. TensorFlow's
    # wheel has no type information for vptr.
    target_compile_options(our_flags INTERFACE -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute,vptr)
  endif()
  if(TFR_SANITIZER MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Where it looks for uses after a return, g++ 12 puts variables on a stack of its own, which is aligned less than
    # vectors of 64 bytes need: storing one ends the process. The loops over vectors return none of their variables.
    # (With a precompiled header g++ would take this parameter from that.)
    set_source_files_properties(${TFR_LOOPS} PROPERTIES COMPILE_OPTIONS --param=asan-use-after-return=0)
  endif()
  # Abseil changes its containers when it sees these macros, and TensorFlow was compiled without them.
  target_compile_options(our_flags INTERFACE -U__SANITIZE_ADDRESS__ -U__SANITIZE_THREAD__)
endif()

# Most of the time that a file takes is TensorFlow's headers. This compiles those that many files include once.
function(tfr_precompile target)
  if(NOT TFR_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <functional> <map> <memory> <set> <string> <unordered_map> <vector>
    <absl/strings/match.h>
    <absl/strings/str_cat.h>
    <tensorflow/core/common_runtime/device.h>
    <tensorflow/core/common_runtime/device_set.h>
    <tensorflow/core/common_runtime/graph_constructor.h>
    <tensorflow/core/common_runtime/optimization_registry.h>
    <tensorflow/core/framework/function.h>
    <tensorflow/core/framework/node_def_util.h>
    <tensorflow/core/framework/op_kernel.h>
    <tensorflow/core/framework/variant_op_registry.h>
    <tensorflow/core/graph/algorithm.h>
    <tensorflow/core/graph/control_flow.h>
    <tensorflow/core/graph/graph.h>
    <tensorflow/core/protobuf/config.pb.h>
    <tensorflow/core/util/device_name_utils.h>)
  tfr_cache_precompiled(${target})
endfunction()
