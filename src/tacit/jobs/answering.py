"""Answers by vote, from the options to the file: sets by a keyed hash, votes of a public model, private draws, card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.arrays import Ids
from tacit.documents.language_models import PUBLIC_SENTENCES
from tacit.documents.language_models.labeling import SetReader
from tacit.guarantee import Adjacency, Guarantee, Model
from tacit.jobs.answer import ANSWER, AnswerConfig, AnsweredQuestions, AnswerPlan
from tacit.jobs.charging import charging
from tacit.jobs.keyed_draft import KeyedDraft, remove_draft
from tacit.jobs.prompted_rows import (
    SECRET_KEY,
    chosen_delta,
    label_lines,
    load_reader,
    notion_of,
    number_line,
    private_records,
    promised_unit,
    without_seed,
)
from tacit.jobs.released_rows import card_of_rows, write_rows_with_card
from tacit.progress import WorkProgress
from tacit.rounding import rounded_up
from tacit.text.files import choose_columns, open_table, text_value
from tacit.text.spoken import spoken_label
from tacit.training.prompting.batches import PrivateRecord, digest_of_records, in_batches, in_sets_of_users
from tacit.training.prompting.reading import check_sets
from tacit.training.prompting.votes import NO_VOTE, VoteLaw, VotePrice, price_of_questions

COMMAND = "tacit answer"


def dry_plan(config: AnswerConfig) -> AnswerPlan:
    """The plan for the records as they are, for their holder alone: nothing is drawn or spent."""
    _, questions = asked_questions(config)
    records, labels = private_records(config, config.data, config.label_column)
    return _plan(config, records, len(labels), len(questions))[0]


def answered_questions(config: AnswerConfig, progress: WorkProgress | None) -> AnsweredQuestions:
    """Answers in the file of a configuration, with their card."""
    column, questions = asked_questions(config)
    model = load_reader(config.model)
    records, labels = private_records(config, config.data, config.label_column)
    plan, price = _plan(config, records, len(labels), len(questions))
    law = VoteLaw(price.width, len(labels), config.set_is_user)
    rows = 1 if config.set_is_user else min(config.physical, int(config.sets))  # users have no rows of their own
    spoken = [spoken_label(label) or label for label in labels]

    def read_sets(sets: Sequence[Sequence[tuple[str, str]]]) -> SetReader:
        return SetReader(model, sets, spoken, most=config.set_examples, input_tokens=config.input_tokens, rows=rows)

    check_sets(
        lambda sets: read_sets([[(text, spoken[0]) for text in each] for each in sets]).scores(PUBLIC_SENTENCES[0]),
        rows,
        PUBLIC_SENTENCES,
    )
    promised = promise(config, price, law, (model.provenance(),), model.name)
    if config.force and not config.resume:
        remove_draft(config.output)
    draft = KeyedDraft(config.output, config.identity(), resume=config.resume, seed=config.seed)
    try:
        # Questions with their places: the kept answers are those of the first ones.
        placed = [PrivateRecord(text, str(place)) for place, text in enumerate(questions)]
        draft.known_records(digest_of_records([*records, *placed], draft.key.key))
        with charging(config, COMMAND, draft.token) as charge:
            charge.reserve(promised)
            sets = _sets(config, records, draft.key.key)
            name = dict(zip(labels, spoken, strict=True))
            reader = read_sets([[(record.text, name[record.label]) for record in members] for members in sets])
            answers = _drawn(reader, sets, questions, law, draft, progress)
            named = [labels[place] for place in answers]
            columns = {column: list(questions), ANSWER: named}
            card = card_of_rows(config, promised, named, command=COMMAND)
            write_rows_with_card(config.output, columns, card)
            charge.commit()
    except BaseException:
        draft.close()
        raise
    draft.delete()
    return AnsweredQuestions(columns, column, card, config.output, plan)


def _drawn(
    reader: SetReader,
    sets: Sequence[Sequence[PrivateRecord]],
    questions: Sequence[str],
    law: VoteLaw,
    draft: KeyedDraft,
    progress: WorkProgress | None,
) -> list[int]:
    """The place of the label of every question; answers of a stopped run are kept."""
    answers = [int(piece["answer"]) for piece in draft.pieces if "answer" in piece]
    empty = np.array([not members for members in sets])
    for number in range(len(answers), len(questions)):
        votes: Ids = np.where(empty, NO_VOTE, reader.scores(questions[number]).argmax(axis=1)).astype(np.int64)
        place = law.draw(votes, draft.key.stream(number, b"answer"))
        draft.add({"answer": place})
        answers.append(place)
        if progress is not None:
            progress("answering", number + 1, len(questions))
    return answers


def asked_questions(config: AnswerConfig) -> tuple[str, list[str]]:
    """The column of the questions and its texts."""
    with open_table(config.questions, None) as table:
        chosen = () if config.question_column is None else (config.question_column,)
        column = choose_columns(table.columns, chosen, ()).texts[0]
        table.select([column])
        return column, [text_value(values[0], row, column) for row, values in table.rows()]


def _sets(config: AnswerConfig, records: Sequence[PrivateRecord], key: bytes) -> list[list[PrivateRecord]]:
    """Disjoint sets of examples; with users, all examples of a user are in one."""
    if config.set_is_user:
        members: dict[str, list[PrivateRecord]] = defaultdict(list)
        for record in in_batches(records, 1, key)[0]:
            members[record.user].append(record)
        return list(members.values())
    if config.user_column is not None:
        return in_sets_of_users(records, int(config.sets), key)
    return in_batches(records, int(config.sets), key)


def _plan(
    config: AnswerConfig, records: Sequence[PrivateRecord], labels: int, questions: int
) -> tuple[AnswerPlan, VotePrice]:
    units = len(records) if config.user_column is None else len({record.user for record in records})
    price = price_of_questions(config.epsilon, chosen_delta(config, max(1, units)), questions, labels)
    votes = units if config.set_is_user else int(config.sets)
    strength = VoteLaw(price.width, labels, config.set_is_user).strength
    return AnswerPlan(price.epsilon, price.delta, questions, price.width, votes, 1 / strength), price


def promise(
    config: AnswerConfig, price: VotePrice, law: VoteLaw, provenance: tuple[object, ...], model: str
) -> Guarantee:
    """The guarantee of all answers together."""
    voters = "every user is a set" if config.set_is_user else f"{config.sets} sets by a keyed hash"
    promised = Guarantee(
        notion=notion_of(price.delta),
        epsilon=price.epsilon,
        delta=price.delta,
        model=Model.CENTRAL,
        unit=promised_unit(config),
        adjacency=Adjacency.ADD_REMOVE,
        mechanism="answers by private vote over disjoint sets of examples",
        parameters={
            "model": model,
            "voters": voters,
            "examples of a set": f"at most {config.set_examples}",
            "questions": price.questions,
            "epsilon of a question": f"{rounded_up(price.width)} (rounding of the choice included)",
            "a vote adds": f"{law.strength:.4g} to the log-weight of its label",
        },
        not_covered=(
            "the questions, which stand beside their answers",
            "people whose text was used to train the language model",
            "how long the run took",
            "what the public list of labels itself says",
            *(() if config.user_column is not None else ("a person who has several records: their budgets add up",)),
            *number_line(config),
        ),
        assumptions=(
            SECRET_KEY,
            "the language model, its tokenizer and the form of the prompt were fixed without looking at the examples",
            "the questions were chosen without looking at the private examples",
            "every user is read alone, in a constant shape"
            if config.set_is_user
            else "sets are computed side by side in a constant shape, each in a row of its own, so that the vote of a "
            "set does not depend on what other rows hold; checked with public texts at the start",
            *label_lines(config, config.label_column),
        ),
    )
    return without_seed(config, replace(promised, provenance=provenance))  # type: ignore[arg-type]
