"""Instances: operators with fixed arguments, in which implementations keep state."""

import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth
X = np.ones(4, "f4")
INCLUDE = pathlib.Path(__file__).parents[2] / "include"

# Writes times * (number of calls of the instance) to y[0].
SOURCE = r"""
#include <opmux/abi.h>
#include <stdlib.h>

#define SCHEMA "state.count(out Tensor y[N], Tensor x[N], int times = 2)"
typedef struct { int64_t times, calls; } state;

static int32_t create(void* self, const opmux_arg* options, uint32_t count, void** instance,
                      opmux_error* error) {
  (void)self, (void)count, (void)error;
  state* made = calloc(1, sizeof(state));
  if (made == NULL) return OPMUX_RESOURCE;
  made->times = options[2].value.i64;
  *instance = made;
  return OPMUX_OK;
}
static void destroy(void* self, void* instance) { (void)self; free(instance); }
static int32_t describe(void* self, void* instance, const opmux_node_sink* sink) {
  (void)self, (void)instance;
  sink->attribute(sink->context, opmux_str_of("packed_bytes"), opmux_str_of("16"));
  return OPMUX_OK;
}
static int32_t run(void* self, const opmux_call* call) {
  (void)self;
  state* own = call->instance;
  *(float*)call->args[0].value.tensor->data = (float)(own->times * ++own->calls);
  return OPMUX_OK;
}

static const opmux_impl kImpl = {.struct_size = sizeof(opmux_impl),
                                 .op = OPMUX_STR("state.count"),
                                 .variant = OPMUX_STR("c"),
                                 .signature = OPMUX_STR(SCHEMA),
                                 .priority = -1,
                                 .run = run,
                                 .create = create,
                                 .destroy = destroy,
                                 .describe = describe};
static const opmux_backend kBackend = {.struct_size = sizeof(opmux_backend),
                                       .name = OPMUX_STR("state"),
                                       .kind = OPMUX_KIND_VENDOR,
                                       .vendor = OPMUX_STR("state"),
                                       .priority = -1,
                                       .impls = &kImpl,
                                       .impl_count = 1,
                                       .impl_stride = sizeof(opmux_impl)};
static const opmux_schema_text kSchema = {sizeof(opmux_schema_text), 0, OPMUX_STR(SCHEMA)};

OPMUX_PLUGIN_ENTRY(state) {
  const opmux_plugin plugin = {.struct_size = sizeof plugin,
                               .abi_major = OPMUX_ABI_MAJOR,
                               .abi_minor = OPMUX_ABI_MINOR,
                               .name = OPMUX_STR("state"),
                               .version = OPMUX_STR("1.0"),
                               .backends = &kBackend,
                               .backend_count = 1,
                               .backend_stride = sizeof kBackend,
                               .operators = &kSchema,
                               .operator_count = 1,
                               .operator_stride = sizeof kSchema};
  (void)host;
  if (out->struct_size < sizeof plugin) return OPMUX_INVALID_ARGUMENT;
  *out = plugin;
  return OPMUX_OK;
}
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None or not INCLUDE.exists():
        pytest.skip("needs a C compiler and the headers")
    folder = tmp_path_factory.mktemp("plugin")
    folder.chmod(0o700)
    (folder / "state.c").write_text(SOURCE)
    flags = ["-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{INCLUDE}"]
    subprocess.run(
        [compiler, *flags, "-o", str(folder / "state.so"), str(folder / "state.c")], check=True
    )
    return str(folder / "state.so")


@pytest.fixture
def count(runtime, plugin):
    runtime.load_plugin(plugin)
    opmux.implementation("state.count", "acme.plain", priority=10, runtime=runtime)(
        lambda x, times: np.full_like(x, -1)
    )
    return runtime.op("state.count")


def first(runtime, call, *args):
    """The first number that a call returns, and the implementation that ran."""
    with opmux.report(runtime=runtime) as reports:
        y = call(*args)
    return float(y[0]), reports[-1].implementation


def test_an_instance_keeps_its_state_between_calls(runtime, count):
    three, two = count.instance(times=3), count.instance()
    for call in range(1, 4):
        assert first(runtime, three, X) == (3 * call, "state.count/state.c")
    assert first(runtime, two, X) == (2, "state.count/state.c")
    out = np.zeros(4, "f4")
    assert three(X, out=out) is out and out[0] == 12
    assert three.states == [
        {
            "implementation": "state.count/state.c",
            "bytes": 16,
            "attributes": {"packed_bytes": "16"},
        }
    ]
    assert runtime.packed_bytes == 32
    three.reset()
    assert three.states == [] and first(runtime, three, X) == (3, "state.count/state.c")
    del three, two
    assert runtime.packed_bytes == 0


def test_a_call_without_an_instance_runs_another_implementation(runtime, count):
    assert first(runtime, count, X) == (-1, "state.count/acme.plain")
    refused = {c.id: c.code for c in opmux.explain(count, X).candidates}
    assert refused["state.count/state.c"] == "caps.instance"
    instance = count.instance(times=3)
    assert opmux.explain(instance, X).chosen == "state.count/state.c"
    with opmux.scope(deny=["state.count/state.c"], runtime=runtime):
        assert first(runtime, instance, X) == (-1, "state.count/acme.plain")


def test_arguments_that_an_instance_would_not_use_are_refused(runtime, count):
    instance = count.instance()
    assert instance.arguments == ["y", "x"]
    assert repr(instance) == "<opmux instance of state.count>"
    assert instance.operator.name == "state.count"
    with pytest.raises(opmux.InvalidArgument, match="'times' is an option"):
        instance(X, times=3)
    with pytest.raises(opmux.InvalidArgument, match="fixed by the instance"):
        count.instance(times=3)(X, times=3)
    with pytest.raises(opmux.InvalidArgument, match="by name"):
        count.instance(X)
    with pytest.raises(opmux.InvalidArgument, match="no argument 'time'"):
        count.instance(time=3)
    with pytest.raises(opmux.InvalidArgument, match="must be an int"):
        count.instance(times="3")


def test_a_weight_is_fixed_and_must_not_move():
    weight, x = np.full((4, 4), 2, "f4"), np.ones((1, 4), "f4")
    layer = opmux.instance("linear", weight=weight)
    assert layer.arguments == ["y", "x", "bias"]
    with opmux.report() as reports:
        np.testing.assert_allclose(layer(x), np.full((1, 4), 8))
    assert reports[-1].implementation.startswith("linear/")
    np.testing.assert_allclose(layer(x, bias=np.ones(4, "f4")), np.full((1, 4), 9))
    with pytest.raises(opmux.InvalidArgument, match="const and must be named"):
        opmux.instance("linear")


def test_a_torch_weight_that_moved_is_refused():
    torch = pytest.importorskip("torch")
    weight, x = torch.ones(4, 4), torch.ones(1, 4)
    layer = opmux.instance("linear", weight=weight)
    assert layer(x).tolist() == [[4, 4, 4, 4]]
    weight.data = torch.full((4, 4), 3.0)
    with pytest.raises(opmux.InvalidArgument, match="has moved") as refused:
        layer(x)
    assert refused.value.reason == "python.instance_moved"
