# Settings that every target of this project shares: language level, warnings, instrumentation.
find_package(Threads REQUIRED)
# CCACHE_BASEDIR makes paths relative, so that build trees with the same flags (the release preset and
# the wheel) share cached results. CCACHE_DEPEND: without it, ccache returns the precompiled header of
# headers whose comments were different, because it compares preprocessed text; g++ then no longer knows
# that those headers were included, and their declarations are compiled twice. The namespace keeps the
# results that were stored that way from being found.
find_program(OPMUX_CCACHE ccache)
if(OPMUX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(opmux_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                     CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
                     CCACHE_NAMESPACE=opmux_depend ${OPMUX_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${opmux_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${opmux_launcher})
endif()

add_library(opmux_settings INTERFACE)
target_compile_features(opmux_settings INTERFACE cxx_std_20 c_std_11)
target_link_libraries(opmux_settings INTERFACE Threads::Threads)
if(OPMUX_WARNINGS)
  target_compile_options(opmux_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                         -Wno-sign-conversion -Werror)
endif()
if(OPMUX_SANITIZE)
  target_compile_options(opmux_settings INTERFACE -fsanitize=${OPMUX_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(opmux_settings INTERFACE -fsanitize=${OPMUX_SANITIZE})
  # Used for tests, commands and vector kernels, because optimising instrumented code takes long and
  # these do not need the speed.
  set(opmux_unoptimised -O0)
endif()
if(OPMUX_SANITIZE STREQUAL "thread")
  target_compile_definitions(opmux_settings INTERFACE OPMUX_THREAD_SANITIZER)
endif()

# Hardening of everything that is installed; tests/install/checksec_test.py checks the result. Not together with
# sanitizers, which replace the functions that _FORTIFY_SOURCE checks.
add_library(opmux_hardening INTERFACE)
if(OPMUX_HARDENING AND NOT OPMUX_SANITIZE)
  set(opmux_fortify 2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(opmux_fortify 3)
  endif()
  # _FORTIFY_SOURCE needs an optimised build.
  target_compile_options(opmux_hardening INTERFACE -fstack-protector-strong
    $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=${opmux_fortify}>)
  target_link_options(opmux_hardening INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # The mark of shadow stacks has to be requested, because Debian's crti.o and libsodium.a lack it; they do not
    # change return addresses. Indirect branch tracking is not marked: these files have no endbr64 instructions.
    target_compile_options(opmux_hardening INTERFACE -fcf-protection=full)
    target_link_options(opmux_hardening INTERFACE -Wl,-z,shstk)
  endif()
endif()

if(OPMUX_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "OPMUX_COVERAGE needs clang; use the preset asan")
  endif()
endif()

# Instruments the sources of a target. Programs that link the target link the runtime of the counters. Plugins
# do not: the runtime changes environment variables when it is loaded.
function(opmux_measure_coverage target)
  if(OPMUX_COVERAGE)
    # Part of the objects, because some tests start programs without environment variables.
    set(profiles ${PROJECT_BINARY_DIR}/profiles/%m.profraw)
    target_compile_options(${target} PRIVATE -fprofile-instr-generate=${profiles}
                           -fcoverage-mapping -fprofile-update=atomic)
    target_link_options(${target} INTERFACE -fprofile-instr-generate)
  endif()
endfunction()
