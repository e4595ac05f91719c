"""All jobs by the names that files of options and cards call them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from tacit.errors import BadInputError, did_you_mean
from tacit.jobs.config import Config
from tacit.jobs.training.tasks import TASK_NAMES
from tacit.training.task_registry import TASKS


class JobPlace(NamedTuple):
    """Where a job is declared: its module, the class of its configuration, and the function that takes one."""

    module: str
    config: str
    function: str = "run"
    task: str | None = None
    """The task whose configuration it is, where `config` names those of all tasks."""


TASK_JOBS: Final = {"train": "tacit.jobs.train", "federate": "tacit.jobs.federate"}
"""The jobs that every task has, and their modules."""


def _of_tasks(job: str) -> dict[str, JobPlace]:
    return {f"{job} {task}": JobPlace(TASK_JOBS[job], "CONFIGS", task=task) for task in TASK_NAMES}


JOBS: Final[dict[str, JobPlace]] = {
    "guide": JobPlace("tacit.jobs.guide.advice", "GuideConfig"),
    "rewrite": JobPlace("tacit.jobs.rewrite", "RewriteConfig"),
    "embed": JobPlace("tacit.jobs.embed", "EmbedConfig"),
    "synthesize": JobPlace("tacit.jobs.synthesize", "MatchingConfig"),
    "decode": JobPlace("tacit.jobs.decode", "DecodeConfig"),
    "synthesize training": JobPlace("tacit.jobs.synthesize_training", "TrainedSynthesisConfig"),
    "synthesize prompting": JobPlace("tacit.jobs.synthesize_prompting", "PromptingConfig"),
    "answer": JobPlace("tacit.jobs.answer", "AnswerConfig"),
    **_of_tasks("train"),
    "train rewrite": JobPlace("tacit.jobs.train_rewriter", "TrainRewriterConfig"),
    "train selective": JobPlace("tacit.jobs.selective", "SelectiveConfig"),
    "train ensemble": JobPlace("tacit.jobs.ensemble", "EnsembleConfig"),
    "train check": JobPlace("tacit.jobs.train_check", "CheckConfig", "check"),
    **_of_tasks("federate"),
    "predict": JobPlace("tacit.jobs.predict", "PredictConfig"),
    "predict ensemble": JobPlace("tacit.jobs.predict_ensemble", "EnsembleAnswersConfig"),
    "graph train": JobPlace("tacit.jobs.graph", "GraphConfig"),
    "graph predict": JobPlace("tacit.jobs.graph", "GraphPredictConfig", "run_predict"),
    "vocabulary": JobPlace("tacit.jobs.vocabulary", "VocabularyConfig"),
    "vocabulary ngrams": JobPlace("tacit.jobs.ngrams", "NgramsConfig"),
    "topics": JobPlace("tacit.jobs.topics", "TopicsConfig"),
    "codebook": JobPlace("tacit.jobs.codebook", "CodebookConfig"),
    "sketch": JobPlace("tacit.jobs.sketch", "SketchConfig"),
    "sketch merge": JobPlace("tacit.jobs.sketch_merge", "SketchMergeConfig"),
    "pool": JobPlace("tacit.jobs.pool", "PoolConfig"),
    "pool fit": JobPlace("tacit.jobs.pool_fit", "PoolFitConfig"),
    "pool write": JobPlace("tacit.jobs.pool_write", "PoolWriteConfig"),
    "pool recipe": JobPlace("tacit.jobs.pool_recipe", "PoolRecipeConfig"),
    "pretrain autoencoder": JobPlace("tacit.jobs.pretrain", "AutoencoderConfig"),
    "pretrain prune": JobPlace("tacit.jobs.pretrain", "PruneConfig"),
    "pretrain noise": JobPlace("tacit.jobs.pretrain", "NoiseConfig"),
    "pretrain average": JobPlace("tacit.jobs.pretrain", "AverageConfig"),
    "pretrain sanitized": JobPlace("tacit.jobs.sanitized", "SanitizedConfig"),
    "evaluate": JobPlace("tacit.jobs.evaluate", "EvaluateConfig"),
    "evaluate corpus": JobPlace("tacit.jobs.evaluate_corpus", "CorpusConfig"),
    "audit mechanism": JobPlace("tacit.jobs.audit.mechanism", "MechanismAuditConfig"),
    "audit text": JobPlace("tacit.jobs.audit.text", "TextAuditConfig"),
    "audit vectors": JobPlace("tacit.jobs.audit.vectors", "VectorAuditConfig"),
    "audit model": JobPlace("tacit.jobs.audit.model", "ModelAuditConfig"),
    "audit synthetic": JobPlace("tacit.jobs.audit.synthetic", "SyntheticAuditConfig"),
    "audit corpus": JobPlace("tacit.jobs.audit.corpus", "CorpusAuditConfig"),
    "audit canaries": JobPlace("tacit.jobs.audit.canaries", "CanariesConfig"),
    "calibrate laplace": JobPlace("tacit.jobs.calibrate", "LaplaceConfig"),
    "calibrate gaussian": JobPlace("tacit.jobs.calibrate", "GaussianConfig"),
    "calibrate response": JobPlace("tacit.jobs.calibrate", "ResponseConfig"),
    "calibrate sgd": JobPlace("tacit.jobs.calibrate", "SgdConfig"),
    "experiment": JobPlace("tacit.experiments.job", "ExperimentConfig"),
}
"""Tacit's jobs by their names; a module is imported when its job is needed."""


def job_names() -> tuple[str, ...]:
    """All jobs, those for tasks of plug-ins too."""
    return (*JOBS, *(f"{job} {task}" for job in TASK_JOBS for task in TASKS.of_plugins()))


def job_place(job: str) -> JobPlace:
    """Where a job is declared."""
    if job in JOBS:
        return JOBS[job]
    names = job_names()
    if job in names:
        kind, _, task = job.partition(" ")
        return JobPlace(TASK_JOBS[kind], "CONFIGS", task=task)
    raise BadInputError(
        "no-such-job",
        "there is no job '{job}'{hint} The jobs are: {jobs}",
        job=job,
        hint=did_you_mean(job, names),
        jobs=", ".join(names),
    )


def config_class(job: str) -> type[Config]:
    """The configuration of a job."""
    place = job_place(job)
    named = getattr(importlib.import_module(place.module), place.config)
    config: type[Config] = named if place.task is None else named[place.task]
    return config


def config_from(values: Mapping[str, object]) -> Config:
    """The configuration that a file of options describes: `job` says of what.

    >>> config_from({"job": "rewrite", "input": "in.csv", "epsilon": 2}).job
    'rewrite'
    """
    job = values.get("job")
    if not isinstance(job, str):
        raise BadInputError(
            "no-job", 'the file does not say what it describes: begin it with job = "NAME" of {jobs}',
            jobs=", ".join(job_names()),
        )  # fmt: skip
    return config_class(job).from_mapping(values)


def run(config: Config) -> object:
    """The result of the job of a configuration.

    >>> run(config_from({"job": "rewrite", "input": ["a good film"], "epsilon": 2})).facts.rows
    1
    """
    place = job_place(config.job)
    return getattr(importlib.import_module(place.module), place.function)(config)
