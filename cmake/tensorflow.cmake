# The installed TensorFlow as targets: tensorflow_framework, which operator libraries link to, and tensorflow_kernels,
# stock operators and kernels for programs that no Python loads them into.
# SPDX-License-Identifier: Apache-2.0

if(NOT TFR_PYTHON)
  find_program(TFR_PYTHON NAMES python python3 HINTS ${CMAKE_SOURCE_DIR}/.venv/bin
               DOC "The interpreter whose TensorFlow to build against")
endif()
execute_process(COMMAND ${TFR_PYTHON} ${CMAKE_SOURCE_DIR}/tools/find_tensorflow.py --module
                OUTPUT_VARIABLE facts ERROR_VARIABLE failure RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR ${failure})
endif()

# Sets `out` to the list `name` of the facts.
function(tfr_fact_list out name)
  string(JSON length LENGTH ${facts} ${name})
  set(values)
  math(EXPR last "${length} - 1")
  foreach(i RANGE ${last})
    string(JSON value GET ${facts} ${name} ${i})
    list(APPEND values ${value})
  endforeach()
  set(${out} ${values} PARENT_SCOPE)
endfunction()

string(JSON TENSORFLOW_VERSION GET ${facts} version)
string(JSON TENSORFLOW_INCLUDE GET ${facts} include)
string(JSON TENSORFLOW_LIBRARY_DIR GET ${facts} library_dir)
tfr_fact_list(TENSORFLOW_COMPILE_FLAGS compile_flags)
tfr_fact_list(TENSORFLOW_LINK_FLAGS link_flags)
tfr_fact_list(TENSORFLOW_MODULE_INCLUDES module_includes)
message(STATUS "TensorFlow ${TENSORFLOW_VERSION} in ${TENSORFLOW_LIBRARY_DIR}")

# Its headers are system headers: their warnings are not ours.
add_library(tensorflow_framework INTERFACE)
target_include_directories(tensorflow_framework SYSTEM INTERFACE ${TENSORFLOW_INCLUDE})
target_compile_options(tensorflow_framework INTERFACE ${TENSORFLOW_COMPILE_FLAGS})
target_link_libraries(tensorflow_framework INTERFACE ${TENSORFLOW_LINK_FLAGS})

add_library(tensorflow_kernels INTERFACE)
target_link_options(tensorflow_kernels INTERFACE -L${TENSORFLOW_LIBRARY_DIR} -Wl,--no-as-needed
                    -l:libtensorflow_cc.so.2)
