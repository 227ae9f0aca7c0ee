"""What the literature found, looked for again on whatever reader is given: confirmed or not, with figures."""

from ragcache.evaluate.findings.choices import at_choices
from ragcache.evaluate.findings.deviation import at_keys
from ragcache.evaluate.findings.effects import at_fusion
from ragcache.evaluate.findings.finding import Finding, markdown
from ragcache.evaluate.findings.gaze import at_gaze
from ragcache.evaluate.findings.reversals import at_answers

__all__ = ["Finding", "at_answers", "at_choices", "at_fusion", "at_gaze", "at_keys", "markdown"]
