"""What the literature found, looked for again on whatever reader is given: confirmed or not, with figures."""

from ragcache_bench.findings.choices import at_choices
from ragcache_bench.findings.deviation import at_keys
from ragcache_bench.findings.effects import at_fusion
from ragcache_bench.findings.finding import Finding, markdown
from ragcache_bench.findings.neighbours import at_neighbours
from ragcache_bench.findings.question_attention import at_gaze, at_layers
from ragcache_bench.findings.reversals import at_answers

__all__ = [
    "Finding",
    "at_answers",
    "at_choices",
    "at_fusion",
    "at_gaze",
    "at_keys",
    "at_layers",
    "at_neighbours",
    "markdown",
]
