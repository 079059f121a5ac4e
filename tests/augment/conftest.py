"""PyTorch as tests want it."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def one_thread_and_a_seed() -> Iterator[None]:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'lexinvariant[torch]'")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)
