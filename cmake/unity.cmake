# Several files of a room in one compilation: the templates of TensorFlow's headers are instantiated once for all of them.
# SPDX-License-Identifier: Apache-2.0

option(TFR_UNITY "Compile the files of a room together, a few at a time; off: each by itself" ON)

# How many files of the rooms, and of the tests, go together. The fewer, the sooner a change of one is compiled; the more,
# the sooner all of them are, since each group costs g++ 2.5 seconds beside what is in its files.
set(TFR_UNITY_FILES 24)
set(TFR_UNITY_TEST_FILES 14)

# Divides the sources of each room into groups of nearly equal size, of at most `files` files.
function(tfr_unity target files)
  if(NOT TFR_UNITY)
    return()
  endif()
  set(rooms)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH room)
    cmake_path(GET room FILENAME room)
    list(APPEND rooms ${room})
    list(APPEND sources_${room} ${source})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    list(LENGTH sources_${room} count)
    math(EXPR groups "(${count} + ${files} - 1) / ${files}")
    set(index 0)
    foreach(source IN LISTS sources_${room})
      math(EXPR group "${index} * ${groups} / ${count} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${room}_${group}")
      math(EXPR index "${index} + 1")
    endforeach()
  endforeach()
  # The paths in the files that CMake writes are relative (from CMake 4.0 on), so that ccache finds them in another checkout.
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
endfunction()
