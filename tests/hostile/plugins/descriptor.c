/* Plugins whose descriptor is wrong in one place; correct with TWIN. */
#include <opmux/abi.h>

#include <string.h>
#include <sys/mman.h>

#ifdef TWIN
#define WRONG(right, wrong) (right)
#else
#define WRONG(right, wrong) (wrong)
#endif

static int32_t run(void* user_data, const opmux_call* call) {
  (void)user_data;
  (void)call;
  return OPMUX_OK;
}

static void destroy(void* user_data, void* instance) {
  (void)user_data;
  (void)instance;
}

static opmux_impl impls[2];
static opmux_backend backend;
static opmux_schema_text operators[1];

static void describe(opmux_plugin* out) {
  impls[0] = (opmux_impl){.struct_size = sizeof(opmux_impl),
                          .op = opmux_str_of(NAME ".swish"),
                          .variant = opmux_str_of("v1"),
                          .priority = -1,
                          .run = run};
  impls[1] = impls[0];
  impls[1].variant = opmux_str_of("v2");
  backend = (opmux_backend){.struct_size = sizeof(opmux_backend),
                            .name = opmux_str_of(NAME),
                            .kind = OPMUX_KIND_VENDOR,
                            .device_type = OPMUX_DEVICE_CPU,
                            .vendor = opmux_str_of("stranger"),
                            .priority = -1,
                            .impls = impls,
                            .impl_count = 2,
                            .impl_stride = sizeof(opmux_impl)};
  operators[0] = (opmux_schema_text){sizeof(opmux_schema_text), 0,
                                     opmux_str_of(NAME ".swish(out Tensor y[N], Tensor x[N])")};
  out->struct_size = sizeof(opmux_plugin);
  out->abi_major = OPMUX_ABI_MAJOR;
  out->abi_minor = OPMUX_ABI_MINOR;
  out->name = opmux_str_of(NAME);
  out->version = opmux_str_of("1");
  out->backends = &backend;
  out->backend_count = 1;
  out->backend_stride = sizeof(opmux_backend);
  out->operators = operators;
  out->operator_count = 1;
  out->operator_stride = sizeof(opmux_schema_text);
}

/* A string that continues into unmapped memory; with TWIN it ends before. */
static opmux_str text_at_the_end(void) {
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  memset(pages, 'a', 4096);
  const opmux_str text = {pages + 4090, WRONG(6, 60)};
  return text;
}

static void spoil(opmux_plugin* out) {
  (void)out;
#if defined(DEED_NEXT_MAJOR)
  out->abi_major = WRONG(OPMUX_ABI_MAJOR, OPMUX_ABI_MAJOR + 1);
#elif defined(DEED_PREVIOUS_MAJOR)
  out->abi_major = WRONG(OPMUX_ABI_MAJOR, OPMUX_ABI_MAJOR - 1);
#elif defined(DEED_NO_SIZE)
  out->struct_size = WRONG(sizeof(opmux_plugin), 0);
#elif defined(DEED_HUGE_SIZE)
  out->struct_size = WRONG(sizeof(opmux_plugin), 0x7fffffff);
#elif defined(DEED_NO_BACKEND_SIZE)
  backend.struct_size = WRONG(sizeof(opmux_backend), 0);
#elif defined(DEED_HUGE_IMPL_SIZE)
  impls[1].struct_size = WRONG(sizeof(opmux_impl), 0x7fffffff);
#elif defined(DEED_HUGE_COUNT)
  backend.impl_count = WRONG(2, 0xffffffff);
#elif defined(DEED_MANY_BACKENDS)
  out->backend_count = WRONG(1, 0x10000000);
#elif defined(DEED_HUGE_STRIDE)
  backend.impl_stride = WRONG(sizeof(opmux_impl), 0x40000000);
#elif defined(DEED_ENDLESS_TEXT)
  out->version.size = WRONG(1, (size_t)1 << 40);
#elif defined(DEED_TEXT_PAST_ITS_PAGE)
  out->version = text_at_the_end();
#elif defined(DEED_CONTROL_CHARACTERS)
  out->vendor = opmux_str_of(WRONG("acme [2J", "acme \033[2J"));
#elif defined(DEED_BAD_UTF8)
  out->vendor = opmux_str_of(WRONG("acme", "acme\xc3\x28"));
#elif defined(DEED_WILD_POINTER)
  backend.impls = WRONG(impls, (const opmux_impl*)(uintptr_t)0xdead0000u);
#elif defined(DEED_NULL_BACKENDS)
  out->backends = WRONG(&backend, NULL);
#elif defined(DEED_NO_RUN)
  impls[0].run = WRONG(run, NULL);
#elif defined(DEED_HALF_A_LIFE)
  impls[0].destroy = WRONG(NULL, destroy);
#elif defined(DEED_DUPLICATE_ID)
  impls[1].variant = opmux_str_of(WRONG("v2", "v1"));
#elif defined(DEED_UNKNOWN_OPERATOR)
  impls[1].op = opmux_str_of(WRONG(NAME ".swish", NAME ".swosh"));
#elif defined(DEED_OTHER_SCHEMA)
  operators[0].text = opmux_str_of(WRONG(NAME ".swish(out Tensor y[N], Tensor x[N])",
                                         "rms_norm(out Tensor y[N], Tensor x[N], int twist)"));
  impls[0].op = impls[1].op = opmux_str_of(WRONG(NAME ".swish", "rms_norm"));
#elif defined(DEED_OTHER_ARGUMENTS)
  impls[0].signature = opmux_str_of(WRONG(NAME ".swish(out Tensor y[N], Tensor x[N])", NAME
                                          ".swish(out Tensor y[N], Tensor x[N], Tensor z[N])"));
#elif defined(DEED_FOREIGN_NAME)
  backend.name = opmux_str_of(WRONG(NAME, "reference"));
#elif defined(DEED_NO_VENDOR)
  backend.vendor = opmux_str_of(WRONG("stranger", ""));
#elif defined(DEED_RESERVED)
  backend.reserved = WRONG(0, 7);
#else
#error "no such deed"
#endif
}

OPMUX_PLUGIN_ENTRY(hostile) {
  (void)host;
  describe(out);
  (void)text_at_the_end;
  (void)destroy;
  spoil(out);
  return OPMUX_OK;
}
