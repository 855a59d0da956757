"""EFFECT. Compiles base.nft and affinity.nft by libnftables in an empty network namespace, and writes base.json.

`python -m proxy.kernel.compile` writes base.json, as root. The daemon needs none of this: it sends what base.json
holds. The work is done in a child process, so that a crash of libnftables is an error message, and so that the
namespace (which an unshare takes for good) is the child's alone.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from string import Template

import msgspec

from endpointslice.types import Family
from proxy.kernel.affinities import split_templates
from proxy.kernel.base import Base, text_digest
from proxy.kernel.change import KernelError
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import read_tables

_CLONE_NEWNET = 0x40000000
_WORDS = {
    Family.IPV4: {"ip": "ip", "unreachable": "icmp port-unreachable", "echo_reply": "icmp type echo-reply"},
    Family.IPV6: {"ip": "ip6", "unreachable": "icmpv6 port-unreachable", "echo_reply": "icmpv6 type echo-reply"},
}


def base_text() -> str:
    """base.nft as shipped."""
    return resources.files(__package__).joinpath("base.nft").read_text()


def affinity_text() -> str:
    """affinity.nft as shipped."""
    return resources.files(__package__).joinpath("affinity.nft").read_text()


def render_text(template: str, family: Family) -> str:
    """Such a text in one family's words."""
    return Template(template).substitute(_WORDS[family])


def compile_base() -> Base:
    """The base as the installed libnftables and this kernel understand it; KernelError says what is missing."""
    done = subprocess.run(
        [sys.executable, "-m", "proxy.kernel.compile", "--child"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        how = f"died of signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        raise KernelError(done.stderr.decode(errors="replace").strip() or f"compiling the ruleset: {how}")
    return msgspec.json.decode(done.stdout, type=Base)


def _compile_here() -> Base:
    """Runs in the child: this process stays in a network namespace of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise KernelError(f"no network namespace to compile the ruleset in: {reason} (CAP_SYS_ADMIN is needed)")
    run_text = _load_libnftables()  # only now: a libnftables context opens its socket at once, in the namespace of then
    template = base_text() + affinity_text()
    code, _output, error = run_text("".join(render_text(template, family) for family in Family))
    if code:
        raise KernelError(f"libnftables refuses the ruleset: {error.strip()}")
    connection = Connection()
    split = {family: split_templates(read_tables(connection, family)) for family in Family}
    connection.close()
    families = {family: base for family, (base, _templates) in split.items()}
    affinities = {family: templates for family, (_base, templates) in split.items()}
    return Base(text_digest(template), families, affinities)


def _load_libnftables() -> Callable[[str], tuple[int, str, str]]:
    try:
        import nftables  # noqa: PLC0415  # needed by this child only, and missing where libnftables is

        return nftables.Nftables().cmd  # type: ignore[no-any-return]
    except (ImportError, OSError) as error:
        raise KernelError(f"libnftables is missing (Debian package libnftables1): {error}") from error


def encode_base(base: Base) -> bytes:
    """base.json's content, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(base, order="sorted"), indent=1) + b"\n"


def main(arguments: list[str]) -> int:
    """Exit code 0, or 1 with a sentence on stderr."""
    try:
        if arguments == ["--child"]:
            sys.stdout.buffer.write(encode_base(_compile_here()))
        else:
            Path(__file__).with_name("base.json").write_bytes(encode_base(compile_base()))
    except KernelError as error:
        sys.stderr.write(f"{error.reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
