from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.documents.buffers import (
    COLOUR,
    GREY,
    REUSED_BYTES,
    BufferStore,
    PageBuffer,
    mapped_mask,
    mapped_page,
    mapped_pixels,
    mask_shape,
)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@given(st.integers(1, 8000), st.integers(1, 3000), st.sampled_from([GREY, COLOUR]))
@settings(max_examples=40, deadline=None)
def test_a_page_of_any_size_keeps_pixels_and_mask_apart(width: int, height: int, channels: int) -> None:
    buffer = PageBuffer(8000 * 3000 * COLOUR)
    last = [1, 2, 3][:channels]
    try:
        with mapped_page(buffer.handle, width, height, channels) as page:
            page.pixels[-1, -1] = last
            page.mask[:] = 7
            assert page.mask.shape == mask_shape(width, height)
        with mapped_pixels(buffer.handle, width, height, channels) as pixels:
            assert pixels[-1, -1].tolist() == last
            assert not pixels.flags.writeable
        with mapped_mask(buffer.handle, width, height) as mask:
            assert mask.min() == 7
        assert buffer.pixels(width, height, channels)[-1, -1].tolist() == last
    finally:
        buffer.close()


def test_a_handle_never_comes_back_although_its_memory_does() -> None:
    store = BufferStore(1000, spare=1)
    first = store.take().handle
    store.give_back(first, 1000)
    second = store.take().handle
    assert first != second
    assert first.partition(":")[2] == second.partition(":")[2]
    store.give_back(first, 1000)
    assert len(store) == 1, "an old handle does not give back a newer page"
    with pytest.raises(KeyError):
        store[first]
    store.close()


def test_memory_that_a_process_works_on_goes_to_no_other_page() -> None:
    store = BufferStore(1000, spare=1)
    given_back, discarded = store.take().handle, store.take().handle
    before = open_descriptors()
    with store.held(given_back), store.held(discarded):
        with store.held(given_back):
            store.give_back(given_back, 1000)
            store.discard(discarded)
        assert len(store) == 0
        assert open_descriptors() == before
        others = {store.take().handle.partition(":")[2] for _ in range(2)}
        assert others.isdisjoint({given_back.partition(":")[2], discarded.partition(":")[2]})
    assert open_descriptors() == before
    store.close()
    assert open_descriptors() == before - 2


def test_memory_is_kept_for_few_and_small_pages_only() -> None:
    before = open_descriptors()
    store = BufferStore(1000, spare=2)
    handles = [store.take().handle for _ in range(5)]
    for handle in handles:
        store.give_back(handle, 1000)
    assert open_descriptors() == before + 2
    large = store.take().handle
    store.give_back(large, REUSED_BYTES + 1)
    doubtful = store.take().handle
    store.discard(doubtful)
    store.discard(doubtful)
    assert open_descriptors() == before
    store.close()


def test_a_view_of_a_closed_buffer_stays_readable() -> None:
    buffer = PageBuffer(3000)
    with mapped_page(buffer.handle, 10, 10, COLOUR) as page:
        page.pixels[:] = 9
    view = buffer.pixels(10, 10, COLOUR)
    buffer.close()
    assert np.all(view == 9)
