"""A node whose tables follow objects, by the planner and the kernel's writer, without a daemon."""

from e2e.world.netns import run_in
from endpointslice.snapshot import EMPTY, Changed, Snapshot, apply_events
from endpointslice.types import IP, Object
from proxy.kernel.change import Change
from proxy.kernel.netlink import NftKernel
from proxy.planner.planner import NOTHING, Moment, Planner
from proxy.planner.settings import Settings
from tests.strategies import kind_of


class PlannedNode:
    """Writes what it is told of into the tables of a node's namespace."""

    def __init__(self, netns: str, settings: Settings) -> None:
        self._netns = netns
        self._settings = settings
        self._snapshot: Snapshot = EMPTY
        self._planner = Planner(self._settings)
        self.kernel = run_in(netns, NftKernel)
        self._installed = self.kernel.install({})

    def close(self) -> None:
        """The tables stay, as a daemon leaves them."""
        self.kernel.close()

    def put(self, *objects: Object) -> Change:
        """The objects as they are from now on; what was written."""
        return self._apply([Changed(kind_of(one), one.name, one) for one in objects])

    def delete(self, *objects: Object) -> Change:
        """The objects' end; what was written."""
        return self._apply([Changed(kind_of(one), one.name, None) for one in objects])

    def restart(self) -> Change:
        """A new process that adopts the tables; what it writes."""
        self.kernel.close()
        self.kernel = run_in(self._netns, NftKernel)
        found = self.kernel.read()
        assert found is not None
        self._installed = found
        self._planner = Planner(self._settings)
        self._planner.update(self._snapshot, NOTHING, Moment(found.elements, frozenset[IP](), 0.0))
        self._planner.desired.doubt(found.elements)
        return self._write()

    def mend(self) -> None:
        """Replace tables that others edited, as a daemon does that noticed."""
        assert self.kernel.read() is None
        self._installed = self.kernel.install(self._planner.desired.elements)

    def _apply(self, events: list[Changed]) -> Change:
        self._snapshot, touched = apply_events(self._snapshot, events)
        self._planner.update(self._snapshot, touched, Moment(self._installed.elements, frozenset[IP](), 0.0))
        return self._write()

    def _write(self) -> Change:
        change = self._planner.desired.pending(self._installed.elements)
        self.kernel.run(change, self._installed)
        self._planner.desired.confirm()
        return change
