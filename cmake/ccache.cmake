# ccache, where it is installed and the user chose no launcher: one answer for every checkout of this tree.
# SPDX-License-Identifier: Apache-2.0

find_program(TFR_CCACHE ccache DOC "The compiler cache; empty for none")
if(TFR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers ask for sloppiness. What stands for their content is a file of our own (below): it is the same in
  # every checkout, and 400 MB need not be read for each file compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TFR_CCACHE})
  set(tfr_cached ON)
endif()

# Says to ccache what the precompiled headers of `target` are made of, apart from the flags of those who use them.
function(tfr_cache_precompiled target)
  if(NOT tfr_cached OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  endif()
  target_compile_options(our_flags INTERFACE -fpch-preprocess)
  get_target_property(headers ${target} PRECOMPILE_HEADERS)
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum
       "${CMAKE_CXX_COMPILER_VERSION} ${TENSORFLOW_VERSION} ${COPTS} ${TFR_SANITIZER} ${headers}\n")
endfunction()
