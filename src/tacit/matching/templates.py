"""Sentence templates of voice assistants and dialogue systems as sentences.

    (turn|switch) on [the] {name}        alternatives, an optional part, a slot
    I need a #HOTEL-INFORM-AREA# hotel   a mark of the kind that MultiWOZ templates have

A template stands for very many sentences, and they would look alike: a few are drawn from each, with a public seed that
depends on the template alone. Slots are filled from short public lists; a template with a slot that none of them knows
gives nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import numpy as np

from tacit.noise.source import public_generator

DRAWN = 3
MOST_DEPTH = 12
_PLACES = ("London", "Denver", "Rome", "Seattle", "Paris", "Boston", "Madrid", "Chicago", "Toronto", "Berlin")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIMES = ("8:15", "9:30", "noon", "17:45", "7 pm", "half past six", "11:00", "14:20")
_ROOMS = ("kitchen", "bedroom", "living room", "garage", "hall", "bathroom", "office")
_THINGS = ("lamp", "fan", "heater", "radio", "garage door", "coffee machine", "sprinkler", "television")
_NUMBERS = ("two", "three", "five", "ten", "20", "45")
FILLINGS: dict[str, tuple[str, ...]] = {
    "location": _PLACES, "city": _PLACES, "place": _PLACES, "dest": _PLACES, "depart": _PLACES,
    "country": ("Spain", "Canada"),
    "day": _DAYS, "date": _DAYS, "weekday": _DAYS, "timer_start": ("ten minutes", "two hours"),
    "time": _TIMES, "leave": _TIMES, "arrive": _TIMES, "duration": ("ten minutes", "two hours", "half an hour"),
    "area": ("north", "south", "east", "west", "center", *_ROOMS), "floor": ("first floor", "basement"),
    "name": _THINGS, "device": _THINGS, "entity": _THINGS, "room": _ROOMS,
    "item": ("milk", "bread", "batteries", "soap"),
    "number": _NUMBERS, "n": _NUMBERS, "people": _NUMBERS, "stay": _NUMBERS, "stars": ("3", "4", "5"),
    "brightness": ("ten", "fifty", "eighty"), "volume": ("ten", "thirty"), "temperature": ("19", "21", "68"),
    "volume_level": ("ten", "thirty"), "position": ("half", "fifty percent"), "percentage": ("forty", "eighty"),
    "color": ("red", "blue", "warm white", "green"), "food": ("Italian", "Indian", "Thai", "Chinese", "French"),
    "price": ("cheap", "moderate", "expensive"), "type": ("museum", "park", "guesthouse", "college", "theater"),
    "query": ("the moon landing", "solar energy", "Ada Lovelace"), "word": ("solitude", "copper", "brave"),
    "artist": ("the Beatles", "Nina Simone", "Mozart"), "song": ("Yesterday", "Summertime"),
    "message": ("dinner is ready", "we leave in ten minutes"), "language": ("Spanish", "German", "Japanese"),
    "department": ("cardiology", "pediatrics", "neurology"), "car": ("taxi", "red taxi"), "title": ("Casablanca",),
    "day_of_week": _DAYS, "hours": ("two", "three"), "minutes": ("ten", "twenty"), "seconds": ("thirty",),
}  # fmt: skip
DIALOGUE_FILLINGS: dict[str, tuple[str, ...]] = {
    **FILLINGS,
    "area": ("north", "south", "east", "west", "center"),
    "name": ("the Riverside", "the Golden Lion", "the Blue Door", "Castle House", "the Old Mill", "the Garden"),
    "type": ("museum", "park", "college", "theater", "cinema"),
}
"""What marks of dialogues about towns stand for, where it differs."""
_SLOT = re.compile(r"\{([^{}]*)\}|<([^<>]*)>")
_MARK = re.compile(r"#[A-Z]+-[A-Z]+-([A-Z]+)#")
_LOOSE = re.compile(r" (?=[.,;:!?])")
_SPLIT_WORD = re.compile(r" ?' ?(?=(?:s|m|re|ve|d|ll)\b)| (?=n't\b)")


def expanded(template: str) -> Iterator[str]:
    """A few sentences of a template.

    >>> list(expanded("turn on the lights"))
    ['turn on the lights']
    """
    generator = _generator_of(template)
    drawn = [_filled(_chosen(template, generator), generator) for _ in range(DRAWN)]
    yield from dict.fromkeys(text for text in drawn if text is not None)


def filled_marks(text: str) -> Iterator[str]:
    """A text of a dialogue with its marks filled in and its punctuation set as usual; nothing if a mark is unknown.

    >>> list(filled_marks("I ' m looking for a hotel ."))
    ["I'm looking for a hotel."]
    """
    generator = _generator_of(text)
    values = [DIALOGUE_FILLINGS.get(name.lower()) for name in _MARK.findall(text)]
    if all(values):
        filled = _MARK.sub(lambda mark: _one_of(DIALOGUE_FILLINGS[mark[1].lower()], generator), text)
        yield _LOOSE.sub("", _SPLIT_WORD.sub(lambda gap: "'" if "'" in gap[0] else "", " ".join(filled.split())))


def _generator_of(template: str) -> np.random.Generator:
    return public_generator(zlib.crc32(template.encode("utf-8")))


def _one_of(values: tuple[str, ...], generator: np.random.Generator) -> str:
    return values[int(generator.integers(len(values)))]


def _chosen(template: str, generator: np.random.Generator) -> str:
    """One way through the alternatives and optional parts of a template, from the innermost outwards."""
    for _ in range(MOST_DEPTH):
        shorter = re.sub(r"\(([^()\[\]]*)\)", lambda part: _one_of(tuple(part[1].split("|")), generator), template)
        shorter = re.sub(
            r"\[([^()\[\]]*)\]",
            lambda part: _one_of((*part[1].split("|"), "") if generator.random() < 0.5 else ("",), generator),
            shorter,
        )
        if shorter == template:
            break
        template = shorter
    return template


def _filled(text: str, generator: np.random.Generator) -> str | None:
    """A text without slots; None if one of them is unknown, or marks of a template are left."""
    names = [first or second for first, second in _SLOT.findall(text)]
    known = [FILLINGS.get(name.partition(":")[0].strip().lower()) for name in names]
    if not all(known):
        return None
    values = iter([_one_of(each, generator) for each in known if each])
    plain = " ".join(_SLOT.sub(lambda _: next(values), text).split())
    return None if re.search(r"[()\[\]{}<>|]", plain) or not plain else plain
