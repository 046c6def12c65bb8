// The source texts of kernels/*.cl, each preceded by elements.cl.
#pragma once

#include <string_view>

namespace opmux::backends::opencl {

extern const std::string_view kMatmulText, kRmsNormText, kRotaryEmbeddingText, kSiluAndMulText,
    kSoftmaxText;

}  // namespace opmux::backends::opencl
