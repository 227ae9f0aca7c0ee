"""The order in which the reader learns: one plain relation first, then more of everything."""

from ragcache_bench.questions.level import Level

LEVELS: tuple[Level, ...] = (
    Level(entities=(3, 5), tokens=200),
    Level(entities=(3, 5), relations=(1, 2), tokens=240),
    Level(entities=(3, 5), sections=0.7, tokens=240),
    Level(entities=(3, 5), relations=(1, 2), sections=0.7, tokens=300),
    Level(entities=(3, 5), relations=(1, 2), groups=2, sections=0.6, tokens=360),
    Level(entities=(3, 5), relations=(1, 2), groups=2, filler=0.2, sections=0.6, tokens=400),
    Level(entities=(3, 5), relations=(1, 2), groups=2, forms=2, filler=0.3, sections=0.55, tokens=480),
    Level(entities=(3, 5), relations=(1, 2), groups=2, forms=2, filler=0.4, sections=0.6, twohop=0.4, wordings=0.1,
          tokens=560),
    Level(entities=(3, 5), relations=(1, 2), groups=2, forms=9, filler=0.4, sections=0.8, twohop=0.25, unknown=0.05,
          wordings=0.2, tokens=720),
    Level(entities=(3, 5), relations=(1, 2), groups=3, forms=9, filler=0.4, sections=0.8, twohop=0.25, unknown=0.2,
          cut=0.05, wordings=0.25, tokens=900),
    Level(entities=(3, 6), relations=(1, 4), groups=4, forms=9, filler=0.5, sections=0.8, twohop=0.25, unknown=0.15,
          cut=0.1, wordings=0.25, tokens=800),
    Level(entities=(3, 7), relations=(1, 4), groups=5, forms=9, filler=0.55, sections=0.8, twohop=0.25, unknown=0.2,
          cut=0.12, wordings=0.3, tokens=1100),
    Level(entities=(3, 8), relations=(2, 4), groups=7, forms=9, filler=0.6, sections=0.8, twohop=0.25, unknown=0.2,
          cut=0.12, wordings=0.3, tokens=1500),
    Level(mix=(1, 1), bindings=0.85, relations=(1, 4), interleaved=0.0, tokens=300, steps=500),
    Level(mix=(1, 1), bindings=0.85, relations=(1, 4), interleaved=0.0, forms=2, filler=0.15, tokens=450, steps=400),
    Level(mix=(1, 1), bindings=0.85, relations=(1, 4), interleaved=0.0, forms=9, filler=0.3, tokens=600, steps=700),
    Level(mix=(1, 2), bindings=0.75, relations=(1, 4), interleaved=0.0, forms=9, filler=0.4,
          alike=0.1, wordings=0.1, least=20, tokens=800, steps=800),
    Level(mix=(1, 3), bindings=0.6, relations=(1, 4), interleaved=0.15, forms=9, filler=0.4,
          alike=0.15, wordings=0.2, least=26, tokens=900, steps=1500),
    Level(mix=(1, 1), bindings=0.3, relations=(1, 4), interleaved=0.1, forms=9, filler=0.2, tokens=500, steps=500,
          only=("multivalue", "counting", "comparing", "exceptions", "yesno", "needles")),
    Level(mix=(1, 6), bindings=0.7, relations=(1, 4), interleaved=0.12, forms=9, filler=0.45,
          alike=0.15, wordings=0.2, least=26, tokens=2100),
)  # fmt: skip
"""Levels by difficulty. Starting wider than the first one leaves the reader guessing among entities for good."""
FIRST_MIXED = next(i for i, level in enumerate(LEVELS) if level.mix)
"""Where a reader that knows facts, sections and two hops goes on."""

REPEAT_UNTIL = 0.8
"""The opening phase of repeated random segments ends once their loss falls below this, or after `REPEAT_STEPS`."""
REPEAT_STEPS = 800
REPEAT_SHARE = 0.05
ADVANCE_AT = 0.76
"""Mean exact match over the families of a level at which the next one starts."""
WEAKEST_AT = 0.75
"""... and that of its weakest family, up to `FIRST_MIXED`."""
ADVANCE_AFTER = 100
"""Steps spent in a level, at least."""
