"""The only place where randomness is made.

`Source.from_os` draws a fresh 256-bit key from the operating system and runs ChaCha with 20 rounds behind
numpy's `Generator`. It cannot be copied, pickled or carried over a fork: each of these would make two places
draw the same noise, and two releases with the same noise cancel it out.

`StreamKey` derives one independent stream per label from a key (a keyed BLAKE2b hash as pseudo-random
function). A job that keeps its key until it is finished can repeat a block after a crash with exactly the
noise it had before, so no row is ever released with two different draws. Because the label includes the
content, another text under the same label gets independent noise.

A test seed derives its key from a public number: anyone can repeat the noise, so `secure` is False and the
privacy card says that there is no guarantee.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import NoReturn

import numpy as np
from randomgen import ChaCha

from tacit.errors import TacitError

KEY_BYTES = 32


class RandomnessError(TacitError):
    """Randomness would have been shared between two places."""


class Source:
    """One stream of random numbers, bound to the process that made it."""

    def __init__(self, key: bytes, *, secure: bool) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a stream key has {KEY_BYTES} bytes, not {len(key)}")
        self.secure = secure
        self._process = os.getpid()
        self._generator = np.random.Generator(ChaCha(key=int.from_bytes(key, "little"), counter=0, rounds=20))

    @classmethod
    def from_os(cls) -> Source:
        """A stream keyed by the operating system: the only kind a release may use."""
        return cls(secrets.token_bytes(KEY_BYTES), secure=True)

    @classmethod
    def from_test_seed(cls, seed: int) -> Source:
        """A repeatable stream. Anybody who knows the seed can undo the noise, so it gives no privacy."""
        return cls(seed_key(seed), secure=False)

    @property
    def generator(self) -> np.random.Generator:
        if os.getpid() != self._process:
            raise RandomnessError(
                "stream-in-forked-process",
                "a random stream was carried into a forked process, where it would repeat the noise of its parent: "
                "make a new stream in each worker",
            )
        return self._generator

    def _refuse(self) -> NoReturn:
        raise RandomnessError("stream-copied", "a random stream cannot be copied: two copies would draw the same noise")

    def __copy__(self) -> NoReturn:
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse()

    def __reduce__(self) -> NoReturn:
        self._refuse()


class StreamKey:
    """The key of one job, from which each block of work derives its own stream."""

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self.key = key
        self.secure = secure

    @classmethod
    def from_os(cls) -> StreamKey:
        return cls(secrets.token_bytes(KEY_BYTES), secure=True)

    @classmethod
    def from_test_seed(cls, seed: int) -> StreamKey:
        return cls(seed_key(seed), secure=False)

    def stream(self, index: int, content: bytes) -> Source:
        """The stream of block `index` with this content: equal for equal pairs, else independent."""
        digest = hashlib.blake2b(
            index.to_bytes(8, "little") + content, key=self.key, digest_size=KEY_BYTES, person=b"tacit-stream"
        ).digest()
        return Source(digest, secure=self.secure)


def new_source(seed: int | None = None) -> Source:
    """A secure stream, or a repeatable one when a test seed is given."""
    return Source.from_os() if seed is None else Source.from_test_seed(seed)


def public_generator(seed: int = 0) -> np.random.Generator:
    """Reproducible randomness for public choices only: vocabulary samples, projection matrices."""
    return np.random.Generator(np.random.PCG64(seed))


def seed_key(seed: int) -> bytes:
    return hashlib.blake2b(str(int(seed)).encode(), digest_size=KEY_BYTES, person=b"tacit-test-seed").digest()
