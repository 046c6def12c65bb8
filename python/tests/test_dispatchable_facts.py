"""The facts that verifiers of dispatchable functions read: recorded, and compared by later
calls."""

import math
import sys

import numpy as np
import pytest
from dispatchable_cases import counted

import opmux


def test_equal_facts_ask_no_verifier_again(scan):
    asked = counted(scan, lambda q: q.shape[-1] % 8 == 0 or "last dimension")
    for rows in range(1, 9):
        assert scan(np.zeros((rows, 16), "f4")) == "acme"
    assert asked.asked == 1
    assert scan(np.zeros((2, 15), "f4")) == "body"
    assert scan.last == "test_scan/own.body"
    assert scan(np.zeros((3, 15), "f4")) == "body"
    assert scan(np.zeros((3, 2, 16), "f8")) == "acme"
    assert asked.asked == 2


@pytest.mark.parametrize(
    ("check", "same", "other"),
    [
        (lambda q: q.dtype == "float32" or "no", np.zeros(3, "f4"), np.zeros(3, "f8")),
        (lambda q: q.ndim == 1 or "no", np.zeros(5, "f4"), np.zeros((1, 2), "f4")),
        (lambda q: len(q.shape) == 1 or "no", np.zeros(5, "f4"), np.zeros((1, 2), "f4")),
        (lambda q: q.shape == (2,) or "no", np.ones(2, "f8"), np.zeros(3, "f4")),
        (lambda q: isinstance(q, np.ndarray) or "no", np.zeros(7, "f4"), [1, 2]),
        (lambda q: q.flags is None or "no", None, np.zeros(2, "f4")),
    ],
)
def test_each_fact_of_an_array_is_noted(scan, check, same, other):
    asked = counted(scan, check)
    scan(np.zeros(2, "f4"))
    if same is not None:
        assert scan(same) == "acme"
        assert asked.asked == 1
    assert scan(other) == "body"
    assert asked.asked == 2


@pytest.mark.parametrize(
    ("check", "first", "same", "other"),
    [
        (lambda q: q > 3 or "no", 5, 5, 2),
        (lambda q: q % 2 == 1 or "no", 5, 5, 4),
        (lambda q: 10 % q == 0 or "no", 5, 5, 4),
        (lambda q: math.sqrt(q) > 2 or "no", 5.0, 5.0, 1.0),
        (lambda q: len(range(q)) == 5 or "no", 5, 5, 4),
        (lambda q: q in (1, 2) or "no", 1, 1, 3),
        (lambda q: f"{q:.1f}" == "0.5" or "no", 0.5, 0.5, 0.25),
        (lambda q: q is True or "no", True, True, False),
        (lambda q: q is None or "no", None, None, 1),
        (lambda q: q == "fast" or "no", "fast", "fast", "slow"),
        (lambda q: isinstance(q, int) or "no", 5, 7, 5.0),
        (lambda q: len(q) == 2 or "no", [1, 2], [3, 4], [1]),
        (lambda q: q[1] == 2 or "no", (1, 2), (5, 2), (1, 3)),
        (lambda q: q[-1].shape[0] == 2 or "no", [np.zeros(2)], [np.ones(2)], [np.zeros(3)]),
        (lambda q: q is float or "no", float, float, int),
        (lambda q: q.value == 3 or "no", opmux.Boost("a/b.*", 3), None, 4),
    ],
)
def test_each_fact_of_other_arguments_is_noted(scan, check, first, same, other):
    if isinstance(first, opmux.Boost):
        check, other = (lambda q: q.add == 3 or "no"), opmux.Boost("a/b.*", 4)
        same = opmux.Boost("x/y.*", 3)
    asked = counted(scan, check)
    assert scan(first) == "acme"
    assert scan(same) == "acme"
    assert asked.asked == 1
    assert scan(other) == "body"
    assert asked.asked == 2


def test_what_no_verifier_reads_does_not_matter(scan):
    asked = counted(scan, lambda q, scale: True)
    for i in range(20):
        assert scan(np.zeros(i + 1), scale=i / 7) == "acme"
    assert asked.asked == 1
    assert scan.remembered == 1


def test_data_are_no_facts_so_the_verifier_is_asked_each_time(scan):
    asked = counted(scan, lambda q: bool(q.sum() > 0) or "no")
    assert scan(np.ones(3)) == "acme"
    assert scan(np.zeros(3)) == "body"
    assert scan(np.ones(3)) == "acme"
    assert asked.asked == 3
    assert scan.remembered == 0


def test_a_few_decisions_are_remembered_the_latest_longest(scan):
    asked = counted(scan, lambda q: q > 0 or "no")
    for i in range(1, 9):
        scan(i)
    assert scan.remembered == 8
    scan(1)
    assert asked.asked == 8
    scan(100)
    scan(1)
    assert asked.asked == 9
    scan(2)
    assert asked.asked == 10


def test_keywords_are_arguments_of_their_own(scan):
    asked = counted(scan, lambda q, k=None, scale=1.0: k is None or "no k")
    assert [scan(1), scan(q=1), scan(1, k=None)] == ["acme"] * 3
    assert scan(1, k=2) == "body"
    assert scan(k=2, q=1) == "body"
    assert asked.asked == 5


def test_references_are_given_back(scan):
    counted(scan, lambda q, k=None: q.shape[0] > 1 or "no")
    x, k = np.zeros(4), object()
    before = sys.getrefcount(x), sys.getrefcount(k)
    for _ in range(100):
        scan(x, k=k)
        scan(x[:1], k=k)
    assert (sys.getrefcount(x), sys.getrefcount(k)) == before


torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("check", "same", "other"),
    [
        (lambda q: q.dtype == torch.float32 or "no", torch.zeros(9), torch.zeros(2).bfloat16()),
        (lambda q: q.dtype == torch.float32 or "no", torch.ones(2), torch.zeros(2).cfloat()),
        (lambda q: q.shape[-1] == 2 or "no", torch.zeros(5, 2), torch.zeros(3)),
        (lambda q: q.size(-1) == 2 or "no", torch.zeros(5, 2), torch.zeros(3)),
        (lambda q: q.dim() == 1 or "no", torch.zeros(5), torch.zeros(1, 2)),
        (lambda q: q.numel() == 2 or "no", torch.ones(2), torch.zeros(3)),
        (lambda q: q.is_contiguous() or "no", torch.zeros(7), torch.zeros(4)[::2]),
        (lambda q: not q.requires_grad or "no", torch.zeros(7), torch.zeros(2).requires_grad_()),
        (lambda q: q.stride(0) == 1 or "no", torch.zeros(7), torch.zeros(4)[::2]),
        (lambda q: q.device.type == "cpu" or "no", torch.zeros(7), torch.zeros(2, device="meta")),
        (lambda q: isinstance(q, torch.Tensor) or "no", torch.zeros(7), 3),
        (lambda q: not q.is_cuda or "no", torch.zeros(7), None),
    ],
)
def test_each_fact_of_a_torch_tensor_is_noted(scan, check, same, other):
    asked = counted(scan, check)
    assert scan(torch.zeros(2)) == "acme"
    assert scan(same) == "acme"
    assert asked.asked == 1
    if other is not None:
        assert scan(other) == "body"
        assert asked.asked == 2


def test_subclasses_are_told_from_plain_tensors(scan):
    asked = counted(scan, lambda q: q.shape[0] == 2 or "no")
    assert scan(torch.zeros(2)) == "acme"
    assert scan(torch.nn.Parameter(torch.zeros(2))) == "acme"
    assert scan(torch.zeros(2).as_subclass(type("Own", (torch.Tensor,), {}))) == "acme"
    assert asked.asked == 3
