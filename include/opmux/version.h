/*
 * The version of these headers. CMake, pkg-config and the Python build read it from this file;
 * opmux_version() returns the version of the library that is loaded, which may be newer.
 */
#ifndef OPMUX_VERSION_H
#define OPMUX_VERSION_H

/*
 * Three numbers for the preprocessor, and the same as a string for messages:
 *
 *    #if OPMUX_VERSION_MAJOR == 0 && OPMUX_VERSION_MINOR < 1
 *    #error "opmux 0.1 or later is required"
 *    #endif
 */
#define OPMUX_VERSION_MAJOR 0
#define OPMUX_VERSION_MINOR 1
#define OPMUX_VERSION_PATCH 0
#define OPMUX_VERSION "0.1.0"

#endif
