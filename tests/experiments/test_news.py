"""Long work is told of now and then, short work not at all."""

from lexinvariant.experiments.news import News


def test_news_come_every_ten_seconds_until_all_is_done() -> None:
    said: list[str] = []
    seconds = iter([0, 4, 11, 12, 25, 40])  # the start, and each time some are done
    news = News(said.append, "LookUp", 1500, clock=lambda: next(seconds))
    for n in (100, 900, 100, 100, 300):
        news(n)
    assert said == ["LookUp: 1,000 of 1,500", "LookUp: 1,200 of 1,500"]
