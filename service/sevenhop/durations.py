"""Durations in settings and rule files."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

from sevenhop.core.durations import parse_duration as parse_duration

Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
