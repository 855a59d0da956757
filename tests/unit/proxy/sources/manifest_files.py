"""What the tests of a folder of manifests share: text of Services, and what became of it."""

from pathlib import Path

from endpointslice.types import Service
from proxy.sources.manifests import load_folder


def service_text(name: str, port: int = 80) -> str:
    return f"kind: Service\nmetadata: {{name: {name}}}\nspec: {{clusterIP: 10.96.0.7, ports: [{{port: {port}}}]}}\n"


def replace(path: Path, text: str) -> None:
    """Write the file as careful editors do: nobody sees it half written."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    hidden.rename(path)


def ports_of(batch: object) -> dict[str, int | None]:
    """The port of each Service in a batch; None for what has no object."""
    assert isinstance(batch, tuple)
    return {
        change.name: change.object.ports[0].port if isinstance(change.object, Service) else None for change in batch
    }


def names_in(root: Path) -> set[str]:
    return {change.name for change in load_folder(root) if change.object is not None}
