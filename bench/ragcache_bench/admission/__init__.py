"""Which tasks may be said to need other chunks: those whose loss by naive reuse outlives every cheaper explanation.

A task that full prefill answers and naive reuse does not may still need nothing of chunk-to-chunk attention: the reader
may keep a chunk's summary in the next chunk's first token, or may merely never have learnt to read chunks that were
computed alone. So a task is admitted by a rule, check by check, and every figure is shown, also of those that fail.
"""

from ragcache_bench.admission.measuring import admit
from ragcache_bench.admission.rule import Admission, Measured, Rule, judge, markdown

__all__ = ["Admission", "Measured", "Rule", "admit", "judge", "markdown"]
