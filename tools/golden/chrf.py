#!/usr/bin/env python3
"""Prints the golden chrF values of tests/train/chrf_test.cpp.

    python3 -m venv V && V/bin/pip install sacrebleu==2.6.0 && V/bin/python tools/golden/chrf.py
"""
from sacrebleu.metrics import CHRF

SETS = {
    "identical": (["Republic of Bulgaria"], ["Republic of Bulgaria"]),
    "near": (["Republik of Bulgaria", "Kagayan"], ["Republic of Bulgaria", "Cagayan"]),
    "empty hypothesis": (["", "Cagayan"], ["Republic of Bulgaria", "Cagayan"]),
    "all hypotheses empty": (["", ""], ["Republic of Bulgaria", "Cagayan"]),
    "short": (["ab", "x"], ["abc", "xyzw"]),
    "shorter reference": (["abcdefghij"], ["abc"]),
    "not ASCII": (["\u00d6sterreich", "\u65e5\u672c\u56fd", "\u039a\u03cd\u03c0\u03c1\u03bf\u03c2"],
                  ["\u00d6sterreich (AT)", "\u65e5\u672c", "\u041a\u0438\u043f\u0440"]),
    "spaces": (["New\u00a0 Zealand", " a b\tc "], ["New Zealand", "abc"]),
    "repeated": (["aaaaaaaaaa", "the the the"], ["aaaa", "the cat"]),
    "nothing in common": (["qqqqqqq"], ["zzzzzzz"]),
}

for name, (hypotheses, references) in SETS.items():
    score = CHRF().corpus_score(hypotheses, [references]).score
    print(f"{name}: {score:.6f}")
