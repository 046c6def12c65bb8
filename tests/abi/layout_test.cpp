#include "layout_test.h"

#include <type_traits>

// Types in the ABI are copied byte by byte, so they must be trivial and standard layout.
template <class... Types>
constexpr bool plain = ((std::is_trivial_v<Types> && std::is_standard_layout_v<Types>) && ...);

static_assert(plain<opmux_str, opmux_dtype, opmux_device, opmux_tensor, opmux_list, opmux_value,
                    opmux_arg, opmux_error, opmux_facts, opmux_call, opmux_caps, opmux_impl,
                    opmux_device_table, opmux_backend, opmux_point, opmux_host, opmux_plugin>);
