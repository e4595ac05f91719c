"""What holds for every job: one declaration for each option, files that give the same configuration, an identity that
hangs on nothing that only affects running, and a command that runs it again."""

from __future__ import annotations

import importlib
import json
import pkgutil
import tomllib
import types
import typing
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import annotated_types
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

import tacit.jobs
from tacit.cli.main import COMMANDS
from tacit.cli.run import command_of
from tacit.errors import TacitError
from tacit.jobs.config import Config, Group, declared_option, option_of
from tacit.jobs.registry import JOBS, config_class, config_from

REQUIRED: dict[str, object] = {
    "data": "rows.csv", "input": "rows.csv", "output": "out", "epsilon": 2.0, "user_column": "user", "nodes": "n.csv",
    "links": "l.csv", "model": "a-model", "start": "a-model", "text": "public.txt", "public": "a public text",
    "original": "a.csv", "private": ("b.csv",), "members": "a.csv", "non_members": "b.csv", "secret": "coins.jsonl",
    "records": 1000, "lot_size": 10, "file": "experiment.toml", "epsilons": (8.0,),
    "sketches": ("a.tacit", "b.tacit"), "sketch": "a.tacit", "public_files": ("public.txt",), "synthetic": "s.csv",
    "release": "released.csv", "name": "a-name", "questions": "q.csv", "label_column": "intent",
}  # fmt: skip
"""Values of options that jobs need."""

OF_JOB: dict[str, dict[str, object]] = {
    "audit text": {"private": "b.csv"},
    "audit vectors": {"private": "b.npy"},
    "audit mechanism": {"mechanism": "santext"},
    "audit model": {"members": "a.csv", "non_members": "b.csv"},
    "audit corpus": {"members": "a.csv", "non_members": "b.csv"},
    "calibrate sgd": {"steps": 5},
    "codebook": {"public": "a public text"},
    "pool": {"public": "a public text"},
    "pool write": {"about": "questions to a bank"},
    "pool recipe": {"name": "support"},
    "synthesize": {"data": "rows.csv"},
    "synthesize training": {"data": "rows.csv"},
    "synthesize prompting": {"data": "rows.csv"},
    "answer": {"labels": ("a", "b")},
    "train classify": {"data": "rows.csv"},
    "federate classify": {"data": "rows.csv"},
}
"""What a job needs that its required fields do not say."""


def smallest(job: str) -> dict[str, object]:
    """Options with which a job can be described."""
    fields = config_class(job).model_fields
    needed = {name: REQUIRED[name] for name, field in fields.items() if field.is_required()}
    wanted = {name: 2.0 for name in ("epsilon",) if name in fields and job.split()[0] != "audit"}
    return {**needed, **wanted, **OF_JOB.get(job, {})}


def values_of(name: str, field: FieldInfo) -> st.SearchStrategy[object]:
    """Values that the type and the range of a field allow."""
    if name == "device":
        return st.sampled_from(["auto", "cpu"])
    return _values(field.annotation, field.metadata)


def _values(annotation: object, metadata: Iterable[object]) -> st.SearchStrategy[object]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _values(arguments[0], [*metadata, *arguments[1:]])
    if origin in (types.UnionType, typing.Union):
        return st.one_of([_values(kind, metadata) for kind in arguments if kind is not type(None)])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(_values(arguments[0], ()), min_size=1, max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[_values(kind, ()) for kind in arguments])
    if origin is dict:
        return st.dictionaries(st.sampled_from(["limit", "spell_out", "keep"]), TEXTS)
    if annotation is bool:
        return st.booleans()
    if annotation in (int, float):
        return _numbers(annotation, metadata)
    return TEXTS.map(Path) if annotation is Path else TEXTS


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=",=/\\"), min_size=1, max_size=8)


def _numbers(kind: type, metadata: Iterable[object]) -> st.SearchStrategy[object]:
    low, high = 0.0, 1_000.0
    for item in metadata:
        if isinstance(item, annotated_types.Ge | annotated_types.Gt):
            low = float(getattr(item, "ge", getattr(item, "gt", 0)))
        if isinstance(item, annotated_types.Le | annotated_types.Lt):
            high = float(getattr(item, "le", getattr(item, "lt", 1)))
    if kind is int:
        return st.integers(int(low) + 1, int(max(high, low + 10)))
    return st.floats(low, high, exclude_min=True, exclude_max=True)


def test_every_configuration_of_a_job_is_registered() -> None:
    for module in pkgutil.walk_packages(tacit.jobs.__path__, "tacit.jobs."):
        importlib.import_module(module.name)
    for config in all_configs():
        if config.__module__.startswith("tacit.jobs.") and "job" in vars(config):
            assert config_class(config.job) is config


@pytest.mark.parametrize("job", JOBS)
def test_a_command_runs_every_job(job: str) -> None:
    assert command_of(job).configs[0] is config_class(job)
    place = JOBS[job]
    assert callable(getattr(importlib.import_module(place.module), place.function))


# Options -----------------------------------------------------------------------------------------------------------


def all_configs(base: type[Config] = Config) -> Iterator[type[Config]]:
    for config in base.__subclasses__():
        if config.__module__.startswith("tacit."):
            yield config
            yield from all_configs(config)


def test_each_option_is_declared_once() -> None:
    """Fields of one name share one declaration, in all jobs, commands and the service."""
    for job in JOBS:
        config_class(job)
    for module, _ in COMMANDS.values():
        importlib.import_module(module)
    declared: dict[str, dict[int, str]] = defaultdict(dict)
    for config in all_configs():
        for name, field in config.model_fields.items():
            option = declared_option(field)
            assert option is not None, f"{config.__name__}.{name} does not say how it is shown"
            assert sum(type(item) is type(option) for item in field.metadata) == 1, f"{config.__name__}.{name}"
            declared[name].setdefault(id(option), config.__name__)
    twice = {name: list(places.values()) for name, places in declared.items() if len(places) > 1}
    assert not twice


@pytest.mark.parametrize("job", JOBS)
def test_every_option_is_explained(job: str) -> None:
    for name, field in config_class(job).model_fields.items():
        assert field.description, name
        assert field.description[-1] in ".…)", name


@pytest.mark.parametrize("job", JOBS)
def test_nothing_that_a_file_cannot_say(job: str) -> None:
    """TOML has no null: a field that may be None is None by default, so that leaving it out says so."""
    for name, field in config_class(job).model_fields.items():
        if type(None) in typing.get_args(field.annotation):
            assert field.is_required() or field.default is None, name


# Files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", JOBS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_a_file_gives_the_same_configuration(job: str, data: st.DataObject) -> None:
    config = drawn_config(job, data)
    assert config_from(tomllib.loads(config.to_toml())) == config
    assert config_from(json.loads(json.dumps({"job": job, **config.model_dump(mode="json")}))) == config


def drawn_config(job: str, data: st.DataObject, group: Group | None = None) -> Config:
    """The smallest configuration of a job with another value of one of its options."""
    fields = config_class(job).model_fields
    names = [name for name, field in fields.items() if group is None or option_of(field).group is group]
    assume(names)
    name = data.draw(st.sampled_from(names))
    value = data.draw(values_of(name, fields[name]), label=name)
    try:
        return config_class(job)(**{**smallest(job), name: value})
    except TacitError:  # it does not fit the other options
        assume(False)
        raise


# Identity ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", JOBS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_what_only_affects_running_is_no_part_of_the_identity(job: str, data: st.DataObject) -> None:
    fields = config_class(job).model_fields.values()
    if not any(option_of(field).group is Group.RUN for field in fields):
        pytest.skip("nothing of it only affects running")
    assert drawn_config(job, data, Group.RUN).identity() == config_class(job)(**smallest(job)).identity()


RUNNING = {
    "address", "cache", "device", "dry_run", "engine", "force", "physical", "report", "resume", "shard", "tensorboard",
    "workers",
}  # fmt: skip
"""Options that change where, how fast or how loudly a job runs, and nothing about what it makes."""


@pytest.mark.parametrize("job", JOBS)
def test_what_affects_the_result_is_apart_from_what_affects_running(job: str) -> None:
    """A new option of the group `RUN` has to be listed here, by somebody who has thought about it."""
    options = {name: option.group for name, _, option in config_class(job).declared_options()}
    assert {name for name, group in options.items() if group is Group.RUN} <= RUNNING
    assert not {name for name, group in options.items() if group is not Group.RUN} & RUNNING


@pytest.mark.parametrize("job", JOBS)
def test_an_identity_names_no_private_file(job: str) -> None:
    config = config_class(job)(**smallest(job))
    private = {"data", "input", "nodes", "links", "original", "private", "members", "non_members", "output", "secret"}
    assert not config.identity().keys() & private


def test_an_identity_is_plain_json_even_without_privacy() -> None:
    config = config_class("train classify")(**{**smallest("train classify"), "epsilon": float("inf")})
    assert json.loads(json.dumps(config.identity(), allow_nan=False))["epsilon"] == "inf"


@pytest.mark.parametrize(
    ("job", "old", "new", "value"),
    [
        ("train classify", "engine", "gradient_engine", "loop"),
        ("predict", "columns", "role_columns", {"text": "review"}),
        ("vocabulary", "size", "vocabulary_size", 500),
        ("pretrain autoencoder", "vocabulary", "vocabulary_size", 500),
        ("pretrain autoencoder", "words", "whole_words", True),
        ("pretrain noise", "bound", "clip_by", "l2"),
        ("graph train", "vocabulary", "public_words", "words.txt"),
        ("audit mechanism", "mechanism_options", "options", {"limit": "10"}),
    ],
)
def test_names_of_earlier_versions_still_work(job: str, old: str, new: str, value: object) -> None:
    options = {**smallest(job), **({"features": "words"} if job == "graph train" else {})}
    config = config_class(job)
    assert config(**options, **{old: value}) == config(**options, **{new: value})
    with pytest.raises(TacitError) as raised:
        config(**options, **{old: value, new: value})
    assert raised.value.code == "option-twice"
