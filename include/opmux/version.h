/* The version, written once: CMake, pkg-config and the programs read it from here. */
#ifndef OPMUX_VERSION_H
#define OPMUX_VERSION_H

#define OPMUX_VERSION_MAJOR 0
#define OPMUX_VERSION_MINOR 1
#define OPMUX_VERSION_PATCH 0
#define OPMUX_VERSION "0.1.0"

#endif
