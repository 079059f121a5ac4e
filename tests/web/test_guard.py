import pytest

from lexinvariant.web.guard import POLICY, may_ask


@pytest.mark.parametrize(
    ("host", "served_as", "answer"),
    [
        ("127.0.0.1:8765", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("LOCALHOST:80", "127.0.0.1", True),
        ("[::1]:8765", "127.0.0.1", True),
        ("192.168.1.7:8765", "0.0.0.0", True),
        ("box.lan:8765", "box.lan", True),
        ("evil.example", "127.0.0.1", False),
        ("evil.example:8765", "0.0.0.0", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("localhost.evil.example", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_only_addresses_and_the_server_s_own_name_are_answered(
    host: str, served_as: str, answer: bool
) -> None:
    assert may_ask(host, served_as) is answer


def test_the_policy_allows_nothing_but_our_own_files() -> None:
    assert POLICY["default-src"] == "'none'"
    assert set(POLICY.values()) <= {"'none'", "'self'"}
