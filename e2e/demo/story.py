"""The demo from curtain to curtain: what is shown, in which order, and whether it all held."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from e2e.demo.acts import ACTS
from e2e.demo.cast import client_pod
from e2e.demo.manifests import file_of
from e2e.demo.shop import EVERYWHERE, NODES, PODS
from e2e.demo.stage import Stage
from e2e.demo.tables import Moved, show_change, show_result, show_service, show_world
from e2e.demo.visits import OUTSIDE_ROUTES
from e2e.world.cluster import World

_MISSPELT = "shop/cart"


class Score:
    """Promises so far."""

    def __init__(self) -> None:
        self.promises = 0
        self.broken = 0
        self.changes_s: list[
            float
        ] = []  # from a write until the last connection of the old plan, or the first of the new

    def add(self, *, kept: bool) -> None:
        """Count one more."""
        self.promises += 1
        self.broken += not kept


@contextmanager
def set_stage(console: Console) -> Iterator[Stage]:
    """The cluster with closeby on every node; all of it is removed afterwards."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="closeby-demo-") as scratch, World("demo", NODES) as world:
        world.add_pods([*PODS, *(client_pod(node) for node in EVERYWHERE)])
        for node, addresses in OUTSIDE_ROUTES.items():
            world.route_outside(addresses, node)
        console.print(show_world(world.nodes.values(), world.pods.values()))
        built = time.monotonic()
        console.print(
            f"Built in {built - started:.1f} s: network namespaces, a real server in every pod, a client on each node, "
            "one outside.\nStarting closeby on each node, on a folder of manifests .."
        )
        stage = Stage(world, Path(scratch))
        try:
            stage.start_daemons()
            console.print(f"Ready after {time.monotonic() - built:.1f} s, `closeby plan` for every node included.\n")
            yield stage
        finally:
            stage.stop_daemons()


def show_everyone(stage: Stage, console: Console, score: Score) -> None:
    """Ask every Service from everywhere."""
    console.rule("[bold]Who is promised what, and who answers[/]")
    console.print(
        "The promise is what `closeby plan` says of the node beforehand: how close the endpoints are, by what rule.\n"
    )
    for number, offer in enumerate(stage.cast.offers):
        rows = stage.ask_everyone(offer)
        for row in rows:
            score.add(kept=not row.complaints)
        console.print(show_service(offer, rows, headed=number == 0))


def show_changes(stage: Stage, console: Console, score: Score) -> None:
    """Change the world under traffic, act by act."""
    console.rule("[bold]The world changes while traffic runs[/]")
    console.print(
        "Each stream connects anew every 4 ms. First new, last old: how long after the manifest's write the first\n"
        "connection went by the new plan, and the last by the old. Failed: no answer, though both plans promise one.\n"
    )
    for number, act in enumerate(ACTS):
        moved = stage.perform(act)
        _score_moved(moved, score)
        console.print(show_change(moved, act.title, headed=number == 0))
    moved = stage.misspell(_MISSPELT, ("east-1", "west-1"))
    _score_moved(moved, score)
    title = f"Somebody saves {file_of(_MISSPELT)} with a typo, and mends it"
    console.print(show_change(moved, title, headed=False))
    said = [event for event in stage.daemons["east-1"].log_events() if event.get("event") == "manifest_broken"]
    score.add(kept=bool(said))
    for event in said[-1:]:
        console.print(f"  closeby's log on east-1: [italic]{event['where']}: {event['why']}: {event['detail']}[/]\n")


def _score_moved(moved: list[Moved], score: Score) -> None:
    for _, _, change in moved:
        score.add(kept=not change.complaints and not change.failed)
        times = [t for t in (change.first_new_s, change.last_old_s) if t is not None]
        score.changes_s += [max(times)] if times else []


def tell(stage: Stage, console: Console) -> bool:
    """The whole demo on a stage that is set; whether every promise was kept."""
    started = time.monotonic()
    score = Score()
    show_everyone(stage, console, score)
    show_changes(stage, console, score)
    took_s = time.monotonic() - started
    console.print(show_result(score.promises, score.broken, stage.connections, took_s, score.changes_s))
    return score.broken == 0


def show_hints(stage: Stage, console: Console) -> None:
    """What to try on a stage that stays up."""
    prefix, folder = stage.world.prefix, stage.folder.root
    client = f"ip netns exec {prefix}client-east1"
    socket = stage.daemons["east-1"].socket
    console.rule("[bold]The cluster stays up: try it from another terminal, as root[/]")
    console.print(
        f"""
Where does traffic go, and why?
  .venv/bin/closeby explain shop/web --node east-1 --control-socket {socket}
  .venv/bin/closeby plan --node west-2 --manifests {folder}
Ask as a pod of east-1; every answer names the pod and the source address that it saw:
  {client} curl http://10.96.0.20
  {client} curl 'http://[fd00:10:96::14]'
Ask from outside, through the node that the address is routed to:
  ip netns exec {prefix}outside curl http://203.0.113.80
Edit a manifest, such as the conditions of an endpoint or trafficDistribution, and ask again:
  {folder}/shop-web.yaml
Look at what closeby counted, and at its rules:
  ip netns exec {prefix}east-1 curl -s http://127.0.0.1:10249/metrics
  ip netns exec {prefix}east-1 nft list table ip closeby

Ctrl-C here takes everything down.""",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
