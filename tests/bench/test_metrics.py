import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragcache_bench.metrics import agrees, bootstrap, bootstrap_ratio, exact_match, normalise, token_f1, wilson


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("an apple, a day", "apple day"),
        ("4,200 euros.", "4200 euros"),
        ("Theatre", "theatre"),
        ("  ", ""),
        ("(A)", "a"),
        ("北京。", "北京"),
        ("「北京」，中国！", "北京中国"),
    ],
)
def test_normalises_as_squad_does(text: str, wanted: str) -> None:
    assert normalise(text) == wanted


def test_exact_match_takes_any_accepted_answer() -> None:
    assert exact_match("the Oslo.", ["Bergen", "Oslo"]) == 1.0
    assert exact_match("Oslo city", ["Bergen", "Oslo"]) == 0.0
    assert exact_match("Oslo", []) == 0.0


def test_f1_counts_shared_words_with_their_multiplicity() -> None:
    assert token_f1("Mara Voss leads", ["Mara Voss"]) == pytest.approx(0.8)
    assert token_f1("x x x", ["x y"]) == pytest.approx(2 / 5)
    assert token_f1("", ["."]) == 1.0
    assert token_f1("", ["Oslo"]) == 0.0


@given(st.text(max_size=30), st.text(max_size=30))
def test_f1_is_one_exactly_where_word_counts_match_and_never_below_exact_match(answer: str, gold: str) -> None:
    score = token_f1(answer, [gold])
    assert exact_match(answer, [gold]) <= score <= 1.0
    assert (score == 1.0) == (sorted(normalise(answer).split()) == sorted(normalise(gold).split()))


def test_agreement_ignores_case_and_punctuation() -> None:
    assert agrees("Oslo.", "oslo")
    assert not agrees("Oslo", "Bergen")


def test_an_article_alone_is_a_word_and_no_empty_answer() -> None:
    assert agrees("A", "(A)")
    for other in ("", "The", "An"):
        assert not agrees("A", other)
        assert token_f1(other, ["A"]) == 0.0


def test_bootstrap_is_the_same_for_the_same_seed_and_holds_the_mean() -> None:
    differences = [-1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    first, again, other = bootstrap(differences, seed=3), bootstrap(differences, seed=3), bootstrap(differences, seed=4)
    assert first == again
    assert first.mean == other.mean == pytest.approx(0.25)
    assert first.low <= first.mean <= first.high


def test_bootstrap_of_equal_scores_has_no_width() -> None:
    interval = bootstrap(np.zeros(50))
    assert (interval.mean, interval.low, interval.high) == (0.0, 0.0, 0.0)


def test_bootstrap_narrows_with_the_root_of_the_number_of_questions() -> None:
    rng = np.random.default_rng(0)
    few, many = (bootstrap(rng.choice([-1.0, 0.0, 1.0], size)) for size in (100, 1600))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.25)


def test_bootstrap_covers_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [bootstrap(rng.binomial(1, 0.3, 80) - 0.3, seed=i, resamples=400) for i in range(200)]
    covered = np.mean([interval.low <= 0 <= interval.high for interval in intervals])
    assert 0.88 <= covered <= 0.99


def test_a_ratio_is_of_sums_and_its_interval_holds_it() -> None:
    parts, wholes = [1.0, 0.0, 1.0, 0.0] * 10, [1.0, 1.0, 1.0, 1.0] * 10
    found = bootstrap_ratio(parts, wholes)
    assert found.mean == 0.5
    assert found.low < 0.5 < found.high


def test_a_ratio_over_ones_is_the_mean_s_bootstrap() -> None:
    values = [-1.0, 0.0, 1.0, 1.0, 0.0]
    assert bootstrap_ratio(values, [1.0] * 5) == bootstrap(values)


def test_draws_without_a_denominator_are_left_out() -> None:
    found = bootstrap_ratio([1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert (found.mean, found.low, found.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("share", "n", "low", "high"), [(1.0, 50, 0.9287, 1.0), (0.5, 10, 0.2366, 0.7634)])
def test_wilson_s_interval_is_the_textbook_s(share: float, n: int, low: float, high: float) -> None:
    found = wilson(share, n)
    assert (found.mean, found.low, found.high) == pytest.approx((share, low, high), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_s_interval_holds_the_share(counts: tuple[int, int]) -> None:
    right, n = counts
    found = wilson(right / n, n)
    assert 0 <= found.low <= right / n + 1e-12
    assert right / n - 1e-12 <= found.high <= 1
