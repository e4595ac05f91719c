"""What a small Ray on this machine can do without, for the length of one command.

Ray starts processes that only the operator of a cluster needs, each of them a Python with its imports:

    its API server (the start waits for it), the monitor of the autoscaler, and one that collects logs for the screen;
    and the agent that its dashboard would ask is started without a web server
    in Ray Data, actors that count for a dashboard, that ask an autoscaler for machines, and that know on which machine
    the other actors are

Together they take seconds of CPU time at every start, and the workers wait for some of them. Ray has no settings for
leaving them out, so what starts them is replaced, in this process only and only while our own Ray runs; a cluster that
was joined is used as its operators made it.

The names are inner ones of Ray. If a version of Ray lacks one of a group, the group is left alone and its processes are
there as usual; nothing else depends on it. A test says whether the installed Ray has all of them.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

SYSTEM_SETTINGS: Final = {
    "enable_metrics_collection": False,
    "task_events_report_interval_ms": 0,
    "prestart_worker_first_driver": False,
}
"""No metrics and no history of tasks: nobody is there to collect them. No workers before it is known how many: one more
than needed would be started."""
LONGEST_LOOK: Final = 20.0


def nothing(*_: Any, **__: Any) -> None:
    return


def no_web_server() -> ImportError:
    return ImportError("left out")


def node_when_there(gcs_address: str, node_id: str) -> Any:
    """Ray looks once a second whether its first node is there; this looks all the time."""
    services = importlib.import_module("ray._private.services")
    state = importlib.import_module("ray._private.state").GlobalState()
    state._initialize_global_state(services._get_gcs_client_options(gcs_address))
    patience = time.monotonic() + LONGEST_LOOK
    while time.monotonic() < patience and all(node["NodeID"] != node_id for node in state.node_table()):
        time.sleep(0.02)
    return state.get_node(node_id)


def no_locations(*_: Any) -> dict[str, str]:
    return {}


class FixedSize:
    """In place of an autoscaler: there is one machine, and all of it may be used."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def try_trigger_scaling(self) -> None:
        return

    def on_executor_shutdown(self) -> None:
        return

    def get_total_resources(self) -> Any:
        ray = importlib.import_module("ray")
        options = importlib.import_module("ray.data._internal.execution.interfaces.execution_options")
        return options.ExecutionResources.from_resource_dict(ray.cluster_resources())


class NoTracker:
    """In place of the actor that is told where actors are: they are here. It travels to the actors."""

    class update_actor_location:  # noqa: N801 - called as the method of an actor is
        remote = staticmethod(nothing)


UTILITIES: Final = "ray._private.utils:"
SERVICES: Final = "ray._private.services:"
NODE: Final = "ray._private.node:Node"
STATISTICS: Final = "ray.data._internal.stats:_StatsManager"
EXECUTOR: Final = "ray.data._internal.execution.streaming_executor:"
POOL: Final = "ray.data._internal.execution.operators.actor_pool_map_operator:"

Group = Mapping[tuple[str, str], Callable[..., Any]]
PROCESSES: Final[Group] = {
    (NODE, "start_api_server"): staticmethod(nothing),
    (NODE, "start_monitor"): staticmethod(nothing),
    (NODE, "start_log_monitor"): staticmethod(nothing),
}
WEB_SERVER: Final[Group] = {(UTILITIES, "get_dashboard_dependency_error"): no_web_server}
LOOKING: Final[Group] = {(SERVICES, "get_node"): node_when_there}
COUNTING: Final[Group] = {
    (STATISTICS, "register_dataset_to_stats_actor"): staticmethod(nothing),
    (STATISTICS, "update_execution_metrics"): staticmethod(nothing),
    (STATISTICS, "update_iteration_metrics"): staticmethod(nothing),
}
GROWING: Final[Group] = {(EXECUTOR, "create_cluster_autoscaler"): FixedSize}
TRACKING: Final[Group] = {
    (POOL, "get_or_create_actor_location_tracker"): NoTracker,
    (POOL, "get_actor_locations"): no_locations,
}


@contextlib.contextmanager
def without(*groups: Group) -> Iterator[None]:
    """Ray does not start what these groups stand for."""
    with contextlib.ExitStack() as replaced:
        for group in filter(is_known, groups):
            for (place, name), replacement in group.items():
                owner = _owner(place)
                replaced.callback(setattr, owner, name, vars(owner)[name])
                setattr(owner, name, replacement)
        yield


def is_known(group: Group) -> bool:
    """Whether the installed Ray has all names of a group."""
    return all(name in vars(_owner(place)) for place, name in group)


def _owner(place: str) -> Any:
    """The module or class behind `module:class`; something empty if it is not there."""
    module, _, kind = place.partition(":")
    try:
        found = importlib.import_module(module)
        return getattr(found, kind) if kind else found
    except (ImportError, AttributeError):
        return FixedSize
