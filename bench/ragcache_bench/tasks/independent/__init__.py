"""Examination questions written apart from everything that readers are trained on.

Nobody who wrote them had read the training questions: names, values, subjects and all wordings are their own. The
facts are made up anew for every question, so none can be known beforehand. All wordings are examination material.
"""

from ragcache_bench.tasks.independent.tasks import INDEPENDENT, FreshFacts, FreshSections

__all__ = ["INDEPENDENT", "FreshFacts", "FreshSections"]
