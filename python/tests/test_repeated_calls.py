"""The fast path for repeated calls: it must notice every difference from the last call."""

import functools

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import opmux  # noqa: E402


def norm(x, weight=1.0, eps=1e-6):
    x = x.double()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def close(y, wanted):
    torch.testing.assert_close(y.double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.fixture
def call(reader):
    """rms_norm after some calls with the same form of arguments."""
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    for _ in range(3):
        opmux.ops.rms_norm(x, out=out)
    with opmux.expect("rms_norm/simd.*"):
        yield opmux.ops.rms_norm


def test_other_tensors_of_the_same_kind(call):
    for _ in range(3):
        x, out = torch.randn(4, 8), torch.empty(4, 8)
        assert call(x, out=out) is out
        close(out, norm(x))


@pytest.mark.parametrize("shape", [(4, 16), (2, 8), (3, 4, 8), (8,)], ids=str)
def test_other_shapes_and_back(call, shape):
    for size in (shape, (4, 8), shape):
        x, out = torch.randn(size), torch.empty(size)
        call(x, out=out)
        close(out, norm(x))


def test_a_shape_that_changed_in_place(call):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    call(x, out=out)
    x.resize_(2, 16).normal_()
    out.resize_(2, 16)
    call(x, out=out)
    close(out, norm(x))


def test_strides_that_changed_in_place(reader):
    x, out = torch.randn(8, 8), torch.empty(8, 8)
    with opmux.expect("rms_norm/simd.*"):
        close(opmux.ops.rms_norm(x, out=out), norm(x))
    x.t_()
    with opmux.expect("rms_norm/reference.*"):
        close(opmux.ops.rms_norm(x, out=out), norm(x))


def test_memory_that_moved(call):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    call(x, out=out)
    x.set_(torch.randn(40), 3, (4, 8), (8, 1))
    call(x, out=out)
    close(out, norm(x))


def test_memory_that_is_shared_until_somebody_writes(call):
    x, kept = torch.randn(4, 8), torch.zeros(4, 8)
    out = torch._lazy_clone(kept)
    call(x, out=out)
    close(out, norm(x))
    assert not kept.any()


def test_another_dtype(call):
    x, out = torch.randn(4, 8).bfloat16(), torch.empty(4, 8, dtype=torch.bfloat16)
    call(x, out=out)
    torch.testing.assert_close(out.double(), norm(x), rtol=1e-2, atol=1e-2)


def test_arguments_by_position_by_name_and_left_out(call):
    x, out, weight = torch.randn(4, 8), torch.empty(4, 8), torch.full((8,), 3.0)
    for _ in range(2):
        close(call(x, weight, out=out), norm(x, 3))
        close(call(x, weight=weight, out=out), norm(x, 3))
        close(call(x, out=out, weight=weight), norm(x, 3))
        close(call(weight=weight, x=x), norm(x, 3))
        close(call(x, None, out=out), norm(x))
        close(call(x, out=None), norm(x))
        close(call(x), norm(x))
        close(call(x, out=out), norm(x))
        close(functools.partial(call, x, out=out)(weight=weight), norm(x, 3))


def test_numbers(call):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    for eps in (0.5, 2.5, 1, 0.5, True):
        close(call(x, eps=eps, out=out), norm(x, eps=eps))
    for eps in (0.5, 2.5, 0.5, 1, 0.5):
        close(call(x, None, eps, out=out), norm(x, eps=eps))


def test_what_is_no_number_is_refused_after_one_that_was(call):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    call(x, eps=0.5, out=out)
    with pytest.raises(opmux.InvalidArgument, match="'eps' must be a float"):
        call(x, eps="much", out=out)
    with pytest.raises(opmux.InvalidArgument, match="'x' must be a tensor"):
        call(3, eps=0.5, out=out)
    close(call(x, eps=0.5, out=out), norm(x, eps=0.5))


def test_words(reader):
    x, out = torch.randn(4, 16), torch.empty(4, 8)
    with opmux.expect("gelu_and_mul/*"):
        for word in ("none", "tanh", "none", "tanh"):
            opmux.ops.gelu_and_mul(x, approximate=word, out=out)
            wanted = torch.nn.functional.gelu(x[:, :8].double(), approximate=word) * x[:, 8:]
            torch.testing.assert_close(out.double(), wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(opmux.InvalidArgument, match="approximate"):
        opmux.ops.gelu_and_mul(x, approximate="much", out=out)


def test_outputs_are_made_for_each_call(call):
    x = torch.randn(4, 8)
    made = [call(x) for _ in range(3)]
    assert len({y.data_ptr() for y in made}) == 3
    for y in made:
        close(y, norm(x))


def test_tensors_that_come_to_require_grad(call):
    x, weight, out = torch.randn(4, 8), torch.ones(8), torch.empty(4, 8)
    call(x, weight, out=out)
    weight.requires_grad_()
    with pytest.raises(opmux.InvalidArgument, match="grad"):
        call(x, weight, out=out)
    with torch.no_grad():
        close(call(x, weight, out=out), norm(x))


def test_outputs_with_elements_that_share_memory(call):
    out = torch.empty(4, 8)
    call(torch.randn(4, 8), out=out)
    with pytest.raises(opmux.InvalidArgument, match="stride of 0"):
        call(torch.randn(4, 8), out=out[:1].expand(4, 8))


def test_an_output_in_a_tuple_between_plain_ones(call):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    for given in (out, (out,), out, None, (out,), out):
        close(call(x, out=given), norm(x))


def test_numpy_arrays_between_tensors(call):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    for rows in (4, 2, 4):
        array = numpy.empty((rows, 8), numpy.float32)
        call(x[:rows], out=array)
        close(torch.from_numpy(array), norm(x[:rows]))
        close(call(x, out=out), norm(x))


def test_a_refused_call_after_a_constant(reader):
    """The refusal comes after another argument was converted to its packed constant."""
    weight = torch.nn.Parameter(torch.randn(16, 8), requires_grad=False)
    plain, bias, x, out = torch.randn(16, 8), torch.randn(16), torch.randn(4, 8), torch.empty(4, 16)
    with opmux.expect("linear/*"):
        opmux.ops.linear(x, plain, bias, out=out)
        with pytest.raises(opmux.InvalidArgument, match="'bias' must be a tensor"):
            opmux.ops.linear(x, weight, 3, out=out)
        opmux.ops.linear(x, plain, bias, out=out)
    torch.testing.assert_close(out, x @ plain.T + bias, rtol=1e-4, atol=1e-4)


def test_inference_tensors_outside_of_inference_mode(call):
    with torch.inference_mode():
        x, out = torch.randn(4, 8), torch.empty(4, 8)
        for _ in range(2):
            close(call(x, out=out), norm(x))
    for _ in range(2):
        with pytest.raises(opmux.InvalidArgument, match="inference tensor"):
            call(x, out=out)
        close(call(x), norm(x))


def test_tensors_with_a_negative_bit(call):
    out = torch.empty(8)
    x = torch.randn(8, dtype=torch.complex64)
    for _ in range(2):
        call(x.imag.resolve_neg().clone(), out=out)
        with pytest.raises(opmux.InvalidArgument, match="negative bit"):
            call(x.conj().imag, out=out)


def test_parameters_are_packed_once_more_after_they_changed(reader):
    weight = torch.nn.Parameter(torch.randn(16, 8), requires_grad=False)
    x, out = torch.randn(4, 8), torch.empty(4, 16)
    with opmux.expect("linear/*"):
        for factor in (1, 2, 2):
            weight.mul_(factor)
            for _ in range(2):
                opmux.ops.linear(x, weight, out=out)
                torch.testing.assert_close(out, x @ weight.T, rtol=1e-4, atol=1e-4)


def test_arguments_are_not_kept_alive(call):
    import sys

    x, weight, out = torch.randn(4, 8), torch.ones(8), torch.empty(4, 8)
    before = [sys.getrefcount(one) for one in (x, weight, out)]
    for _ in range(3):
        call(x, weight, out=out)
    assert [sys.getrefcount(one) for one in (x, weight, out)] == before


@pytest.mark.full
def test_other_ways_of_reading_in_between(call, compiled_reader):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    for reader in (None, compiled_reader, None):
        opmux._core.use_torch_reader(reader)
        close(call(x, out=out), norm(x))
