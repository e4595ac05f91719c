"""The supervisor of worker processes: tasks come back, deaths are told with what was in hand, nobody is left behind."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection

import pytest

from tacit.engines import processes
from tacit.engines.supervisor import Supervisor, WorkerDeath, WorkerReport


def echo(connection: Connection, prefix: str) -> None:
    inbox = processes.inbox_of(connection)
    while True:
        task = inbox.get()
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "leave":
            os._exit(3)
        connection.send(f"{prefix} {task}")


def next_event(supervisor: Supervisor[int]) -> WorkerReport[int] | WorkerDeath[int]:
    return next(supervisor.events(timeout=60))


def test_a_report_names_its_task_and_frees_the_worker() -> None:
    with Supervisor[int](echo, ("did",), most=1) as supervisor:
        supervisor.hand_out(7, "a")
        assert supervisor.free_worker() is None
        report = next_event(supervisor)
        assert isinstance(report, WorkerReport)
        assert (report.key, report.message) == (7, "did a")
        supervisor.finish(report)
        assert supervisor.free_worker() is report.worker


@pytest.mark.parametrize(("task", "name", "exit_code"), [("die", "SIGKILL", -9), ("leave", None, 3)])
def test_a_death_tells_what_was_in_hand_and_how_often_it_killed(task: str, name: str | None, exit_code: int) -> None:
    with Supervisor[int](echo, ("did",), most=1, in_hand=2) as supervisor:
        for times in (1, 2):
            supervisor.hand_out(1, task)
            supervisor.hand_out(2, "b")
            death = next_event(supervisor)
            assert isinstance(death, WorkerDeath)
            assert (death.keys, death.times, death.signal, death.exit_code) == ((1, 2), times, name, exit_code)
            assert supervisor.workers == []


def test_a_worker_that_dies_idle_is_replaced_without_a_word() -> None:
    with Supervisor[int](echo, ("did",), most=1) as supervisor:
        supervisor.hire(1)
        first = supervisor.workers[0]
        first.process.kill()
        first.process.join()
        supervisor.hand_out(1, "a")
        report = next_event(supervisor)
        assert isinstance(report, WorkerReport)
        assert report.worker is not first


def test_idle_workers_come_first_and_there_are_never_too_many() -> None:
    with Supervisor[int](echo, ("did",), most=2, in_hand=2) as supervisor:
        for key in range(4):
            supervisor.hand_out(key, "a")
        assert [list(worker.in_hand) for worker in supervisor.workers] == [[0, 2], [1, 3]]
        assert supervisor.free_worker() is None
        workers = [worker.process for worker in supervisor.workers]
    assert not any(process.is_alive() for process in workers)


def test_waiting_ends_after_its_time() -> None:
    with Supervisor[int](echo, ("did",), most=1) as supervisor:
        supervisor.hire(1)
        before = time.monotonic()
        assert list(supervisor.events(timeout=0.05)) == []
        assert time.monotonic() - before < 5
