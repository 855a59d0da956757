"""`closeby validate`: what is wrong with pools, advertisements and Services, before they are applied."""

import sys
from pathlib import Path

import click

from proxy.addresses.validate import Document, Finding, Verdict, judge, read_documents
from proxy.cli.controller import check_namespace, namespace_option
from proxy.config import ConfigError

_STDIN = Path("-")
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@click.command("validate")
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    metavar="FILE",
    help="A file of manifests, a folder of them, or - for standard input; may be given more than once.",
)
@namespace_option
def validate(*, files: tuple[Path, ...], namespace: str) -> None:
    """Say what is wrong with IPAddressPools, L2Advertisements and what Services ask for, by file, document and field.

    All files are judged together, as one cluster's: pools must not overlap. Fields that nobody reads are errors, since
    the API server drops them without a word. Nothing is asked of an API server; other kinds are left out.

    Exit codes: 0 all is well; 1 something is wrong; 2 a wrong flag, or a file that can't be read.

    \b
    Examples:
      closeby validate -f pools.yaml
      kubectl get ipaddresspools,l2advertisements -n metallb-system -o yaml | closeby validate -f -
    """  # noqa: D301 (click reads the backslash)
    check_namespace(namespace)
    documents: list[Document] = []
    broken: list[Finding] = []
    for name, content in _read(files):
        for part in read_documents(name, content):
            if isinstance(part, Document):
                documents.append(part)
            else:
                broken.append(part)
    verdict = judge(documents, namespace)
    _show(Verdict((*broken, *verdict.findings), verdict.counts))


def _show(verdict: Verdict) -> None:
    for finding in verdict.findings:
        click.echo(str(finding) if finding.fatal else f"note: {finding}", err=finding.fatal)
    wrong = sum(finding.fatal for finding in verdict.findings)
    looked = ", ".join(f"{count} {kind}" for kind, count in sorted(verdict.counts.items())) or "no object that it reads"
    if wrong:
        click.echo(f"closeby: {wrong} mistake{'s' if wrong > 1 else ''} in {looked}", err=True)
        sys.exit(1)
    click.echo(f"All is well: {looked}.")


def _read(files: tuple[Path, ...]) -> list[tuple[str, bytes]]:
    """Name and content of each file; those of a folder in the order of their names."""
    found: list[tuple[str, bytes]] = []
    for file in files:
        try:
            if file == _STDIN:
                found.append(("standard input", sys.stdin.buffer.read()))
            elif file.is_dir():
                inside = sorted(path for path in file.iterdir() if path.suffix in _SUFFIXES and path.is_file())
                found += [(str(path), path.read_bytes()) for path in inside]
            else:
                found.append((str(file), file.read_bytes()))
        except OSError as error:
            raise ConfigError(f"-f: {file}: {error.strerror}") from error
    return found
