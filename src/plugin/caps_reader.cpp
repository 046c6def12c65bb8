#include "plugin/caps_reader.hpp"

#include "plugin/bounded_read.hpp"

namespace opmux::plugin {
namespace {

Status read_into(opmux_str text, std::string_view what, std::string& into) {
  Result<std::string> read = read_text(text, what);
  if (!read) return read.error();
  into = *std::move(read);
  return {};
}

Status read_dtypes(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.dtypes, from.dtype_count, from.dtype_stride,
                                OPMUX_SIZE_TO(opmux_dtype_rule, dtypes), "dtype rules");
  if (!rules) return rules.error();
  for (const opmux_dtype_rule& rule : *rules) {
    Caps::DTypes& added = into.dtype_rules.emplace_back();
    if (Status bad = read_into(rule.arg, "argument of a dtype rule", added.arg); !bad.ok()) {
      return bad;
    }
    const auto dtypes = read_values(rule.dtypes, rule.count, "dtypes of a rule");
    if (!dtypes) return dtypes.error();
    for (const opmux_dtype& d : *dtypes) added.allowed.push_back({d.code, d.bits, d.lanes});
  }
  return {};
}

Status read_dims(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.dims, from.dim_count, from.dim_stride,
                                OPMUX_SIZE_TO(opmux_dim_rule, value), "dimension rules");
  if (!rules) return rules.error();
  for (const opmux_dim_rule& rule : *rules) {
    Caps::Dim& added = into.dim_rules.emplace_back(Caps::Dim{"", rule.relation, rule.value});
    if (Status bad = read_into(rule.dim, "name of a dimension", added.dim); !bad.ok()) return bad;
  }
  return {};
}

Status read_tensors(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.tensors, from.tensor_count, from.tensor_stride,
                                OPMUX_SIZE_TO(opmux_tensor_rule, layout), "tensor rules");
  if (!rules) return rules.error();
  for (const opmux_tensor_rule& rule : *rules) {
    if (Status bad = check_reserved(rule.reserved, "a tensor rule"); !bad.ok()) return bad;
    Caps::Tensor& added = into.tensor_rules.emplace_back();
    added.flags = rule.flags;
    added.min_rank = rule.min_rank;
    added.max_rank = rule.max_rank;
    added.alignment = rule.alignment;
    if (Status bad = read_into(rule.arg, "argument of a tensor rule", added.arg); !bad.ok()) {
      return bad;
    }
    if (Status bad = read_into(rule.layout, "layout", added.layout); !bad.ok()) return bad;
  }
  return {};
}

Status read_scalars(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.scalars, from.scalar_count, from.scalar_stride,
                                OPMUX_SIZE_TO(opmux_scalar_rule, values), "scalar rules");
  if (!rules) return rules.error();
  for (const opmux_scalar_rule& rule : *rules) {
    Caps::Scalar& added = into.scalar_rules.emplace_back();
    if (Status bad = read_into(rule.arg, "argument of a scalar rule", added.arg); !bad.ok()) {
      return bad;
    }
    auto values = read_values(rule.values, rule.count, "values of a scalar rule");
    if (!values) return values.error();
    added.allowed = *std::move(values);
  }
  return {};
}

Status read_machine(const opmux_caps& from, Caps& into) {
  if (Status bad = check_reserved(from.reserved, "capabilities"); !bad.ok()) return bad;
  if ((from.flags & ~OPMUX_CAPS_INFERENCE_ONLY) != 0) {
    return malformed("flags",
                     base::concat("capability flags ", from.flags, " are not all defined"));
  }
  into.no_grad = (from.flags & OPMUX_CAPS_INFERENCE_ONLY) != 0;
  into.device_type = from.device_type;
  if (Status bad = read_into(from.cpu_features, "cpu_features", into.features); !bad.ok()) {
    return bad;
  }
  if (Status bad = read_into(from.min_arch, "min_arch", into.min_arch); !bad.ok()) return bad;
  return read_into(from.max_arch, "max_arch", into.max_arch);
}

}  // namespace

Result<Caps> read_caps(const opmux_caps* from) {
  Caps into;
  into.device_type = 0;
  if (from == nullptr) return into;
  opmux_caps caps{};
  Status bad = read_struct(from, OPMUX_SIZE_TO(opmux_caps, scalar_stride), kLargestStride,
                           "capabilities", caps);
  for (const auto read : {read_machine, read_dtypes, read_dims, read_tensors, read_scalars}) {
    if (bad.ok()) bad = read(caps, into);
  }
  if (!bad.ok()) return bad;
  return into;
}

}  // namespace opmux::plugin
