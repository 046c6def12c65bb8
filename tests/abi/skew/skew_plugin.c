/*
 * A plugin that is compiled against several versions of the header. It uses every array and table
 * of the ABI; with a later header it fills the fields that an older host does not know with noise.
 */
#include <stdlib.h>
#include <string.h>

#include <opmux/abi.h>

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define NAME TEXT(SKEW_NAME)

#ifdef OPMUX_ABI_APPENDED
#define TAIL , .appended = {0xdeadbeefdeadbeefu, 0xdeadbeefdeadbeefu}
#else
#define TAIL
#endif

#define SCHEMA NAME ".scale(out Tensor y[N], Tensor x[N], float factor = 2, int mode = 0)"

typedef struct prepared {
  int64_t size;
} prepared;

static int32_t plan(void* user_data, const opmux_call* call, void** state) {
  prepared* made = malloc(sizeof *made);
  (void)user_data;
  if (!made) return OPMUX_RESOURCE;
  made->size = call->args[1].value.tensor->shape[0];
  *state = made;
  return OPMUX_OK;
}

static void plan_free(void* user_data, void* state) {
  (void)user_data;
  free(state);
}

static uint64_t workspace(void* user_data, const opmux_call* call) {
  (void)user_data;
  return (uint64_t)call->args[1].value.tensor->shape[0] * sizeof(float);
}

static float* elements(const opmux_call* call, uint32_t i) {
  const opmux_arg* arg = (const opmux_arg*)((const char*)call->args + (size_t)i * call->arg_stride);
  return (float*)((char*)arg->value.tensor->data + arg->value.tensor->byte_offset);
}

/* y = factor * x, computed through the workspace, with the length from the plan. */
static int32_t run(void* user_data, const opmux_call* call) {
  const prepared* made = call->prepared;
  float* scratch = call->workspace;
  (void)user_data;
  if (!made || !scratch || call->workspace_size < (uint64_t)made->size * sizeof(float)) {
    return OPMUX_FAILED;
  }
  for (int64_t i = 0; i < made->size; ++i) {
    scratch[i] = (float)call->args[2].value.f64 * elements(call, 1)[i];
  }
  memcpy(elements(call, 0), scratch, (size_t)made->size * sizeof(float));
  return OPMUX_OK;
}

/* Refuses mode 3 by a fact that it lists; facts that it does not list must read as absent. */
static int32_t verify(void* user_data, const opmux_facts* facts, opmux_error* why) {
  int64_t mode = 0, unlisted = 0;
  (void)user_data;
  if (facts->get(facts->context, OPMUX_FACT_DIM, opmux_str_of("N"), &unlisted)) return OPMUX_FAILED;
  facts->get(facts->context, OPMUX_FACT_SCALAR, opmux_str_of("mode"), &mode);
  if (mode != 3) return OPMUX_OK;
  why->outcome = OPMUX_DECLINED;
  why->code = opmux_str_of("skew.mode");
  return OPMUX_DECLINED;
}

static int32_t answer(void* user_data, const opmux_arg* args, uint32_t count, opmux_arg* into) {
  (void)user_data;
  (void)args;
  (void)count;
  into->tag = OPMUX_ARG_I64;
  into->value.i64 = 64;
  return OPMUX_OK;
}

/* Logs, through the host, how much of the host struct it sees. */
static int32_t init(void* user_data, const opmux_host* host, opmux_error* error) {
  (void)user_data;
  (void)error;
  if (host->abi_major != OPMUX_ABI_MAJOR || host->has(host->user_data, opmux_str_of("wings"))) {
    return OPMUX_FAILED;
  }
  host->log(host->user_data, 1,
            opmux_str_of(host->struct_size >= sizeof(opmux_host) ? NAME
                             " has a host as long as its header's"
                                                                 : NAME " has a shorter host"));
  return OPMUX_OK;
}

static const opmux_dtype f32[] = {{OPMUX_DTYPE_FLOAT, 32, 1}};
static const opmux_dtype_rule dtypes[] = {{.struct_size = sizeof(opmux_dtype_rule),
                                           .count = 1,
                                           .arg = OPMUX_STR("y"),
                                           .dtypes = f32 TAIL},
                                          {.struct_size = sizeof(opmux_dtype_rule),
                                           .count = 1,
                                           .arg = OPMUX_STR("x"),
                                           .dtypes = f32 TAIL}};
static const opmux_dim_rule dims[] = {{.struct_size = sizeof(opmux_dim_rule),
                                       .dim = OPMUX_STR("N"),
                                       .relation = OPMUX_AT_LEAST,
                                       .value = 2 TAIL},
                                      {.struct_size = sizeof(opmux_dim_rule),
                                       .dim = OPMUX_STR("N"),
                                       .relation = OPMUX_MULTIPLE_OF,
                                       .value = 2 TAIL}};
static const opmux_tensor_rule tensors[] = {{.struct_size = sizeof(opmux_tensor_rule),
                                             .arg = OPMUX_STR("y"),
                                             .flags = OPMUX_TENSOR_CONTIGUOUS TAIL},
                                            {.struct_size = sizeof(opmux_tensor_rule),
                                             .arg = OPMUX_STR("x"),
                                             .flags = OPMUX_TENSOR_CONTIGUOUS TAIL}};
static const int64_t modes[] = {0, 3};
static const opmux_scalar_rule scalars[] = {{.struct_size = sizeof(opmux_scalar_rule),
                                             .count = 2,
                                             .arg = OPMUX_STR("mode"),
                                             .values = modes TAIL}};
static const opmux_caps caps = {.struct_size = sizeof(opmux_caps),
                                .dtypes = dtypes,
                                .dtype_count = 2,
                                .dtype_stride = sizeof dtypes[0],
                                .dims = dims,
                                .dim_count = 2,
                                .dim_stride = sizeof dims[0],
                                .tensors = tensors,
                                .tensor_count = 2,
                                .tensor_stride = sizeof tensors[0],
                                .scalars = scalars,
                                .scalar_count = 1,
                                .scalar_stride = sizeof scalars[0] TAIL};
static const opmux_fact verify_reads[] = {
    {.struct_size = sizeof(opmux_fact), .kind = OPMUX_FACT_SCALAR, .name = OPMUX_STR("mode") TAIL},
    {.struct_size = sizeof(opmux_fact), .kind = OPMUX_FACT_DTYPE, .name = OPMUX_STR("x") TAIL}};
static const opmux_fact plan_reads[] = {
    {.struct_size = sizeof(opmux_fact), .kind = OPMUX_FACT_DIM, .name = OPMUX_STR("N") TAIL}};

#define IMPL(name)                                \
  {.struct_size = sizeof(opmux_impl),             \
   .flags = OPMUX_IMPL_DETERMINISTIC,             \
   .op = OPMUX_STR(NAME ".scale"),                \
   .variant = OPMUX_STR(name),                    \
   .signature = OPMUX_STR(SCHEMA),                \
   .priority = -1,                                \
   .caps = &caps,                                 \
   .verify = verify,                              \
   .verify_reads = verify_reads,                  \
   .verify_reads_count = 2,                       \
   .verify_reads_stride = sizeof verify_reads[0], \
   .plan = plan,                                  \
   .plan_free = plan_free,                        \
   .plan_reads = plan_reads,                      \
   .plan_reads_count = 1,                         \
   .plan_reads_stride = sizeof plan_reads[0],     \
   .workspace = workspace,                        \
   .run = run TAIL}
static const opmux_impl first[] = {IMPL("a"), IMPL("b")}, second[] = {IMPL("c")};

#define BACKEND(text, list, number)      \
  {.struct_size = sizeof(opmux_backend), \
   .name = OPMUX_STR(text),              \
   .kind = OPMUX_KIND_VENDOR,            \
   .device_type = OPMUX_DEVICE_CPU,      \
   .vendor = OPMUX_STR("skew"),          \
   .priority = -1,                       \
   .impls = list,                        \
   .impl_count = number,                 \
   .impl_stride = sizeof(opmux_impl) TAIL}
static const opmux_backend backends[] = {BACKEND(NAME "_one", first, 2),
                                         BACKEND(NAME "_two", second, 1)};
static const opmux_schema_text operators[] = {
    {.struct_size = sizeof(opmux_schema_text), .text = OPMUX_STR(SCHEMA) TAIL},
    {.struct_size = sizeof(opmux_schema_text),
     .text = OPMUX_STR(NAME ".other(out Tensor y[N], Tensor x[N])") TAIL}};
static const opmux_point points[] = {{.struct_size = sizeof(opmux_point),
                                      .signature = OPMUX_STR("skew.tile() -> int"),
                                      .backend = OPMUX_STR(NAME "_two"),
                                      .answer = answer TAIL}};
static const opmux_plugin plugin = {.struct_size = sizeof(opmux_plugin),
                                    .abi_major = OPMUX_ABI_MAJOR,
                                    .abi_minor = OPMUX_ABI_MINOR,
                                    .name = OPMUX_STR(NAME),
                                    .version = OPMUX_STR("1"),
                                    .vendor = OPMUX_STR("skew"),
                                    .backends = backends,
                                    .backend_count = 2,
                                    .backend_stride = sizeof backends[0],
                                    .operators = operators,
                                    .operator_count = 2,
                                    .operator_stride = sizeof operators[0],
                                    .points = points,
                                    .point_count = 1,
                                    .point_stride = sizeof points[0],
                                    .init = init TAIL};

/* Must not write past the host's struct. */
OPMUX_PLUGIN_ENTRY(skew) {
  const uint32_t room = out->struct_size;
  (void)host;
  memcpy(out, &plugin, room < sizeof plugin ? room : sizeof plugin);
  if (room < sizeof plugin) out->struct_size = room;
  return OPMUX_OK;
}
