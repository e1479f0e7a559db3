# SPDX-License-Identifier: Apache-2.0
#
# What find_package(Quern), FetchContent and add_subdirectory bring for projects that generate kernels of their own:
#
#   quern_generate(TARGET acme [PREFIX acme] [OPS gelu add ...] [DTYPES f16 f32 ...] [SPECS my_ops.lua ...]
#                  [ALL_OPS] [KERNELS_ONLY] [CUDA] [OPTIONS --no-threads ...])
#     The static library `acme`: kernels, their runtime, the headers acme.h and acme.hpp. PREFIX: what all names begin with; default:
#     the target's name. SPECS: ops of one's own, all of them. OPS: those of the library; default: none beside SPECS, else all. ALL_OPS:
#     all in any case. DTYPES: default all. KERNELS_ONLY: no runtime. CUDA: kernels for CUDA, too. OPTIONS: others of `build.lua generate`.
#
#   quern_freeze(TARGET fused RECORD fused.record | SCAN a.c b.c ... [DTYPES f32 ...] [PREFIX fused] [SPECS my_ops.lua ...])
#     The kernels of expressions, built ahead: linked into a program, `fused` adds them to libquern before main. RECORD: the file that
#     a run of the program with QUERN_RECORD has written; SCAN: C sources with QUERN_KERNEL.
#
# Both generate when CMake configures, and again when a spec, a record or the generator has changed. Relative names are those of
# files in the current source folder. Targets of one project need different prefixes.

function(_quern_run out prefix target)
  if(NOT QUERN_LUA)
    message(FATAL_ERROR "${target}: the generator needs Lua 5.4; set QUERN_LUA to its program")
  endif()
  file(MAKE_DIRECTORY ${out})
  execute_process(COMMAND ${QUERN_LUA} ${QUERN_BUILD_LUA} ${ARGN} --prefix ${prefix} --out ${out}
                  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE why)
  if(failed)
    message(FATAL_ERROR "${target}: the generator says:\n${said}${why}")
  endif()
  # What it was made from: the depfile, "manifest: file file ..." in make's syntax, a file a line.
  file(READ ${out}/${prefix}.d text)
  string(REPLACE ";" "\\;" text "${text}")
  string(REGEX REPLACE " ?\\\\\n" ";" lines "${text}")
  list(REMOVE_AT lines 0)
  set(inputs "")
  foreach(line IN LISTS lines)
    string(STRIP "${line}" line)
    string(REPLACE "\\ " " " line "${line}")
    get_filename_component(line "${line}" ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND inputs "${line}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
  add_subdirectory(${out} ${out}/built EXCLUDE_FROM_ALL)
  if(NOT TARGET ${target})
    add_library(${target} ALIAS ${prefix}_tree)
  endif()
endfunction()

# The arguments of both: checks, names, --spec FILE for each spec.
macro(_quern_begin function)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}: unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TARGET)
    message(FATAL_ERROR "${function}: TARGET is missing")
  endif()
  if(NOT arg_PREFIX)
    set(arg_PREFIX ${arg_TARGET})
  endif()
  set(specs "")
  foreach(spec IN LISTS arg_SPECS)
    list(APPEND specs --spec ${spec})
  endforeach()
  set(lists "")
  foreach(name OPS DTYPES)
    if(arg_${name})
      string(TOLOWER ${name} option)
      string(REPLACE ";" "," value "${arg_${name}}")
      list(APPEND lists --${option} ${value})
    endif()
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}.quern)
endmacro()

function(quern_generate)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ALL_OPS;KERNELS_ONLY;CUDA" "TARGET;PREFIX" "OPS;DTYPES;SPECS;OPTIONS")
  _quern_begin(quern_generate)
  if(arg_ALL_OPS AND arg_OPS)
    message(FATAL_ERROR "quern_generate: OPS and ALL_OPS are given")
  endif()
  set(options ${arg_OPTIONS})
  if(arg_SPECS AND NOT arg_OPS AND NOT arg_ALL_OPS)
    list(APPEND options "--ops=") # none of the library's
  endif()
  if(arg_KERNELS_ONLY)
    list(APPEND options --kernels-only)
  endif()
  if(arg_CUDA)
    list(APPEND options --target c,cuda)
  endif()
  _quern_run(${out} ${arg_PREFIX} ${arg_TARGET} generate ${lists} ${specs} ${options})
endfunction()

function(quern_freeze)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;PREFIX;RECORD" "SCAN;DTYPES;SPECS")
  _quern_begin(quern_freeze)
  if(arg_RECORD AND NOT arg_SCAN AND NOT arg_DTYPES)
    _quern_run(${out} ${arg_PREFIX} ${arg_TARGET} freeze --record ${arg_RECORD} ${specs})
  elseif(arg_SCAN AND NOT arg_RECORD)
    _quern_run(${out} ${arg_PREFIX} ${arg_TARGET} generate --scan ${arg_SCAN} ${lists} ${specs})
  else()
    message(FATAL_ERROR "quern_freeze: either RECORD FILE, or SCAN FILE... and its DTYPES")
  endif()
endfunction()
