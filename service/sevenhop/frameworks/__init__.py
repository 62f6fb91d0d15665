"""
Inference frameworks: how each lays out its objects, one module and one line each.

The order is the order of precedence: where an object could be read as two things, the first wins, because the first
owns the second (a NIMService makes InferenceServices, Dynamo makes PodCliqueSets).
"""

from __future__ import annotations

from sevenhop.core.inventory.framework import FrameworkSpec
from sevenhop.frameworks import (
    aibrix,
    dynamo,
    grove,
    kaito,
    kserve,
    kubeai,
    kuberay,
    llm_d,
    lws,
    nim,
    plain_engine,
    production_stack,
    rbg,
)

FRAMEWORKS: tuple[FrameworkSpec, ...] = (
    nim.SPEC,
    kserve.SPEC,
    dynamo.SPEC,
    aibrix.SPEC,
    kuberay.SPEC,
    kubeai.SPEC,
    kaito.SPEC,
    rbg.SPEC,
    production_stack.SPEC,
    grove.SPEC,
    llm_d.SPEC,
    lws.SPEC,
    plain_engine.SPEC,
)
