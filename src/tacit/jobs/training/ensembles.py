"""The training of an ensemble, from its options to the models of all shards. Loads the libraries of neural models."""

from __future__ import annotations

import hashlib

from tacit.errors import BadInputError
from tacit.guarantee import Unit
from tacit.jobs.ensemble import EnsembleConfig, TrainedEnsemble
from tacit.jobs.training.public_models import load_member
from tacit.jobs.training.running import read_rows
from tacit.progress import WorkProgress
from tacit.training.ensemble.folder import EnsembleFolder, EnsembleSettings
from tacit.training.ensemble.learning import ShardNetwork, steps_of_shard
from tacit.training.ensemble.split import names_of_users, rows_of_shards

USER = "whose row it is"


def train_shards(config: EnsembleConfig, progress: WorkProgress) -> TrainedEnsemble:
    """A model for each shard of the rows; shards that a stopped run has finished are kept."""
    roles = {"text": config.text_column}
    rows = read_rows(config.data, roles if config.user_column is None else {**roles, USER: config.user_column})
    if not rows:
        raise BadInputError("no-rows", "there are no rows to train on")
    texts = [row["text"] for row in rows]
    owners = texts if config.user_column is None else names_of_users([row[USER] for row in rows], config.user_column)
    settings = settings_of(config)
    generator = load_member(config.model)
    folder = EnsembleFolder(config.output)
    key = folder.begin(settings, resume=config.resume)
    folder.check_same_run(settings, _fingerprint(texts, owners))
    shards = rows_of_shards(owners, settings.shards, key)
    network = ShardNetwork(generator, rank=settings.rank, seed=settings.start_seed)
    total = sum(steps_of_shard(len(mine), settings) for mine in shards)
    before = 0

    def stepped(step: int, _: int) -> None:
        progress("training shards", before + step, total)

    for number, mine in enumerate(shards):
        if mine and not folder.shard(number).exists():
            mine_texts = [texts[row] for row in mine]
            network.learn(mine_texts, settings, settings.start_seed + number, stepped)
            network.save(folder.shard(number))
        before += steps_of_shard(len(mine), settings)
        progress("training shards", before, total)
    folder.finish(settings)
    return TrainedEnsemble(config.output, settings.shards, len(rows), sum(not mine for mine in shards))


def settings_of(config: EnsembleConfig) -> EnsembleSettings:
    """The settings of an ensemble as its folder keeps them."""
    return EnsembleSettings(
        model=config.model,
        shards=config.shards,
        unit=(Unit.RECORD if config.user_column is None else Unit.USER).value,
        dataset=config.chosen_dataset,
        rank=config.rank,
        length=config.length,
        epochs=config.epochs,
        batch=config.batch,
        learning_rate=config.learning_rate,
        start_seed=config.start_seed or 0,
    )


def _fingerprint(texts: list[str], owners: list[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text, owner in zip(texts, owners, strict=True):
        for part in (text, owner):
            digest.update(hashlib.blake2b(part.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()
