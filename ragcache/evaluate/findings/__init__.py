"""What the literature found, looked for again on whatever reader is given: confirmed or not, with figures."""

from ragcache.evaluate.findings.finding import Finding, markdown
from ragcache.evaluate.findings.look import LETTERS, Looking, at_answers

__all__ = ["LETTERS", "Finding", "Looking", "at_answers", "markdown"]
