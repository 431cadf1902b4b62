"""The benchmark's arithmetic and pictures, on times that are made up; and its runs, interpreted."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from kernels import bench, verify
from kernels.roofline import intensity, roofline

FOUND = {
    "date": "2000-01-01",
    "card": "a card <that> is none",
    "versions": {"torch": "0", "triton": "0", "python": "0"},
    "rates": {"matmul_tflops": 700.0, "copy_tbs": 4.0},
    "decode": {"Hq": 64, "Hkv": 8, "tbs": 3.0, "ms": 0.3},
    "leaderboard_ms": 6.0,
    "attention": [
        {"pass": kind, "provider": provider, "N": N, "D": D, "causal": causal, "tflops": speed}
        for kind in ("forward", "backward")
        for D in (64, 128)
        for causal in (False, True)
        for N in (1024, 4096, 16_384)
        for provider, speed in (("ours", 400.0 if N > 1024 else 1.0), ("flash", 200.0))
    ],
}


def test_ratios_are_taken_in_one_run_and_on_long_sequences():
    ratios = dict(bench.ratios(FOUND))
    assert ratios["forward D64 full / flash"] == pytest.approx(2)
    assert ratios["forward D128 causal / cudnn"] is None  # it was not measured, and is not counted as reached
    assert ratios["decode / copy"] == 0.75


def test_the_table_names_what_was_not_measured():
    said = bench.text(FOUND | {"ratios": dict(bench.ratios(FOUND))})
    assert "forward D128 causal / cudnn      not measured" in said
    assert "2.00, wanted 1.25" in said and max(map(len, said.splitlines())) <= 80


def test_the_roofline_is_a_picture_with_a_point_for_every_row():
    picture = ElementTree.fromstring(roofline(FOUND))
    points = [one for one in picture.iter() if one.tag.endswith("circle")]
    assert len(points) == 1 + sum(row["provider"] == "ours" for row in FOUND["attention"])
    assert all(64 <= float(one.get("cx")) <= 640 and 0 <= float(one.get("cy")) <= 420 for one in points)


def test_operations_a_byte_are_those_of_moving_everything_once():
    row = {"pass": "forward", "N": 1024, "D": 64, "causal": False}
    assert intensity(row) == 4 * 1024 * 1024 * 64 / (4 * 1024 * 64 * 2)


def test_every_provider_computes_the_same(monkeypatch):
    """On the CPU, where the backends of a GPU are not: PyTorch's own choice stands for each of them."""
    monkeypatch.setattr(bench, "PROVIDERS", {"ours": None, "flash": torch.nn.attention.SDPBackend.MATH})
    q, k, v = (torch.randn(1, 2, 40, 16) for _ in range(3))
    ours, theirs = (bench.attention(provider, q, k, v, True)() for provider in bench.PROVIDERS)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_what_is_wrong_on_a_card_is_said_and_what_is_right_is_not(monkeypatch):
    for name, size in {"B": 2, "Hq": 2, "Hkv": 1, "N": 33, "S": 50}.items():
        monkeypatch.setattr(verify, name, size)
    assert not list(verify.wrong(torch.device("cpu"), 16, torch.float32))
    monkeypatch.setattr(verify, "flash_attention_decode", lambda q, *_: torch.rand_like(q))
    said = list(verify.wrong(torch.device("cpu"), 16, torch.float32))
    assert len(said) == 2 and "decoding: output is off by" in said[0] and "other bits" in said[1]
