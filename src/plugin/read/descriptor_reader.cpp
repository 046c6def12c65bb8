#include "plugin/read/descriptor_reader.hpp"

#include <algorithm>
#include <exception>

#include "plugin/read/backend_reader.hpp"
#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

using registry::Batch;

constexpr size_t kBackendSize = OPMUX_SIZE_TO(opmux_backend, device);
constexpr size_t kLongestName = 64;

/// Converts one descriptor to a PluginContents.
class Reader {
 public:
  Reader(const opmux_plugin& from, std::shared_ptr<void> owner, std::string build_id)
      : from_(from), origin_{"", std::move(build_id), std::move(owner)} {}

  Status read() {
    for (const auto step :
         {&Reader::head, &Reader::backends, &Reader::operators, &Reader::points}) {
      if (Status bad = (this->*step)(); !bad.ok()) return bad;
    }
    return {};
  }
  PluginContents take() { return std::move(contents_); }

 private:
  Status head();
  Status backends();
  Status operators();
  Status points();
  void answer(const opmux_point& point);

  const opmux_plugin& from_;
  Origin origin_;
  PluginContents contents_;
};

Status Reader::head() {
  struct Field {
    opmux_str from;
    std::string_view what;
    std::string* into;
  };
  for (const Field& field :
       {Field{from_.name, "name of the plugin", &contents_.name},
        Field{from_.version, "version of the plugin", &contents_.version},
        Field{from_.vendor, "vendor of the plugin", &contents_.vendor},
        Field{from_.build_id, "build_id of the plugin", &contents_.build_id}}) {
    Result<std::string> text = read_text(field.from, field.what);
    if (!text) return text.error();
    *field.into = *std::move(text);
  }
  if (contents_.name.empty() || contents_.name.size() > kLongestName) {
    return malformed("name",
                     base::concat("the plugin's name must have 1 to ", kLongestName, " bytes"));
  }
  if ((from_.flags & ~OPMUX_PLUGIN_UNLOADABLE) != 0) {
    return malformed("flags", base::concat("plugin flags ", from_.flags, " are not all defined"));
  }
  if (contents_.build_id.empty()) contents_.build_id = origin_.build_id;
  origin_.plugin = contents_.name;
  origin_.build_id = contents_.build_id;
  contents_.functions = from_;
  return check_reserved(from_.reserved, "the plugin");
}

Status Reader::backends() {
  if (Status bad = check_array(from_.backends, from_.backend_count, from_.backend_stride,
                               kBackendSize, "backends");
      !bad.ok()) {
    return bad;
  }
  for (uint32_t i = 0; i < from_.backend_count; ++i) {
    opmux_backend backend{};
    Status bad =
        read_element(from_.backends, i, from_.backend_stride, kBackendSize, "backend", backend);
    if (!bad.ok()) {
      contents_.refused.push_back({base::concat("backend ", i + 1), std::move(bad)});
      continue;
    }
    std::optional<Batch> batch = read_backend(backend, origin_, contents_.refused);
    if (batch) contents_.batches.push_back(*std::move(batch));
  }
  return {};
}

bool implements(const Batch& batch, std::string_view op) {
  return std::any_of(batch.implementations.begin(), batch.implementations.end(),
                     [&](const auto& draft) { return draft.op == op; });
}

Status Reader::operators() {
  const auto texts = read_array(from_.operators, from_.operator_count, from_.operator_stride,
                                OPMUX_SIZE_TO(opmux_schema_text, text), "operators");
  if (!texts) return texts.error();
  for (const opmux_schema_text& item : *texts) {
    if (Status bad = check_reserved(item.reserved, "an operator"); !bad.ok()) return bad;
    const Result<std::string> text = read_text(item.text, "schema of an operator", Lines::many);
    if (!text) return text.error();
    // A schema that does not parse is kept, so that the registry reports the error.
    const Result<schema::Schema> schema = schema::parse_schema(*text);
    bool used = false;
    for (Batch& batch : contents_.batches) {
      if (!schema || !implements(batch, schema->name)) continue;
      batch.operators.push_back(*text);
      used = true;
    }
    if (!used) contents_.operators.push_back(*text);
  }
  return {};
}

void Reader::answer(const opmux_point& point) {
  std::string backend;
  Result<registry::PointAnswerDraft> draft = read_point(point, origin_, backend);
  const std::string what = base::concat("answer of ", backend);
  if (!draft) return contents_.refused.push_back({what, draft.error()});
  for (Batch& batch : contents_.batches) {
    if (batch.backend.name == backend) return batch.points.push_back(*std::move(draft));
  }
  contents_.refused.push_back(
      {what, malformed("backend", base::concat("the plugin has no backend '", backend,
                                               "' that could answer ", draft->signature))});
}

Status Reader::points() {
  const auto all = read_array(from_.points, from_.point_count, from_.point_stride,
                              OPMUX_SIZE_TO(opmux_point, answer), "answers");
  if (!all) return all.error();
  for (const opmux_point& point : *all) answer(point);
  return {};
}

}  // namespace

Result<PluginContents> read_plugin(const opmux_plugin& plugin, const std::shared_ptr<void>& owner,
                                   const std::string& build_id) {
  if (plugin.abi_major != OPMUX_ABI_MAJOR) {
    return malformed("abi_major",
                     base::concat("it was built for plugin ABI version ", plugin.abi_major,
                                  "; this build supports version ", OPMUX_ABI_MAJOR));
  }
  opmux_plugin copy{};
  if (Status bad = read_struct(&plugin, OPMUX_SIZE_TO(opmux_plugin, reserved), sizeof(copy),
                               "the plugin's descriptor", copy);
      !bad.ok()) {
    return bad;
  }
  Reader reader(copy, owner, build_id);
  if (Status bad = reader.read(); !bad.ok()) return bad;
  return reader.take();
}

Result<opmux_plugin> query_plugin(opmux_plugin_query_fn query, const opmux_host& host) {
  struct {
    opmux_plugin plugin;
    char slack[4096];
  } room{};
  room.plugin.struct_size = sizeof(opmux_plugin);
  try {
    const int32_t outcome = query(&host, &room.plugin);
    if (outcome == OPMUX_OK) return room.plugin;
    return malformed("query", base::concat("its query function returned outcome ", outcome));
  } catch (const std::exception& thrown) {
    return malformed("threw", base::concat("its query function threw: ", thrown.what()));
  } catch (...) {
    return malformed("threw", "its query function threw an object that is not a std::exception");
  }
}

}  // namespace opmux::plugin
