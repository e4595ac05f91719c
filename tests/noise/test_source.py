"""Random streams: independent, repeatable only on request, never shared."""

from __future__ import annotations

import copy
import os
import pickle
import traceback

import numpy as np
import pytest

from tacit.noise import RandomnessError, Source, StreamKey, new_source, public_generator, seed_key


def draws(source: Source, count: int = 8) -> list[int]:
    return source.generator.integers(0, 1 << 62, size=count).tolist()


def in_child(action) -> str:
    """Run the action in a forked child and return what it writes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, action().encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def test_two_secure_streams_differ():
    first, second = new_source(), new_source()
    assert first.secure
    assert second.secure
    assert draws(first) != draws(second)


def test_a_test_seed_repeats_and_is_not_secure():
    first, second = new_source(3), Source.from_test_seed(3)
    assert not first.secure
    assert draws(first) == draws(second)
    assert draws(Source.from_test_seed(3)) != draws(Source.from_test_seed(4))
    assert len(seed_key(3)) == 32


def test_a_stream_is_not_its_own_repetition():
    source = Source.from_test_seed(0)
    assert draws(source) != draws(source)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_duplicated(duplicate):
    with pytest.raises(RandomnessError, match="cannot be copied"):
        duplicate(Source.from_os())


def test_a_stream_refuses_to_work_in_a_forked_child():
    source = Source.from_test_seed(1)

    def use() -> str:
        try:
            return f"drew {draws(source)}"
        except RandomnessError as error:
            return f"refused: {error}"

    assert in_child(use).startswith("refused: a random stream was carried into a forked process")
    assert len(draws(source)) == 8


def test_a_plain_numpy_generator_would_repeat_the_parents_noise():
    """The mistake the guard is for: a generator made before the fork gives both sides the same noise."""
    shared = np.random.Generator(np.random.PCG64(7))
    child = in_child(lambda: str(shared.integers(0, 1 << 62, size=4).tolist()))
    assert child == str(shared.integers(0, 1 << 62, size=4).tolist())


def test_streams_of_a_job():
    key = StreamKey.from_test_seed(5)
    assert draws(key.stream(0, b"text")) == draws(key.stream(0, b"text"))
    distinct = [
        key.stream(0, b"text"),
        key.stream(1, b"text"),
        key.stream(0, b"other"),
        StreamKey.from_test_seed(6).stream(0, b"text"),
        StreamKey.from_os().stream(0, b"text"),
    ]
    assert len({tuple(draws(source)) for source in distinct}) == len(distinct)
    assert not key.stream(0, b"").secure
    assert StreamKey.from_os().stream(0, b"").secure


def test_public_randomness_is_reproducible():
    assert public_generator(1).integers(0, 100, 5).tolist() == public_generator(1).integers(0, 100, 5).tolist()


def test_a_key_has_32_bytes():
    with pytest.raises(ValueError, match="32 bytes"):
        Source(b"short", secure=False)
