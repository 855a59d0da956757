"""The `closeby` command."""

import sys
from importlib import import_module

import click

from proxy.lean_imports import uncollected  # isort: split

from proxy.config import ConfigError
from proxy.control import LockError
from proxy.kernel.change import KernelError
from proxy.privilege import raise_net_admin
from proxy.restart import RestartWanted

_COMMANDS = (
    "run",
    "plan",
    "explain",
    "verify",
    "dump",
    "cleanup",
    "controller",
    "validate",
    "announce",
    "who-announces",
    "drain",
    "move",
)  # modules of proxy.cli, each with its command


class _Commands(click.Group):
    """Imports a command when it is asked for: `run` needs neither tables nor YAML, and starts in half the time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module = cmd_name.replace("-", "_")
        with uncollected():
            command: click.Command = getattr(import_module(f"proxy.cli.{module}"), module)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def closeby() -> None:
    """Keep Service traffic as close as it can be, and say why.

    closeby is a node's service proxy: it reads Services and EndpointSlices, and programs nftables so that a connection
    goes to an endpoint on the same node, else in the same zone, else anywhere, as the Service's policies say.

    \b
    Look before you run it:
      closeby plan --node node-1 --manifests ./manifests      what that node would program
      closeby explain default/web --node node-1 ...           where its traffic goes, and why
    Run it (as root, on a node that runs no kube-proxy):
      closeby run --manifests ./manifests
    """  # noqa: D301 (click reads the backslash)
    raise_net_admin()


@closeby.command()
def version() -> None:
    """Print this program's version."""
    from proxy.version import VERSION  # noqa: PLC0415  # read from the installed package's files, which takes 10 ms

    click.echo(f"closeby {VERSION}")


def main() -> None:
    """Run the command; errors end in one plain sentence: exit 2 for a wrong flag or file, 1 for what can't be done."""
    try:
        closeby(prog_name="closeby")
    except ConfigError as error:
        click.echo(f"closeby: {error}", err=True)
        sys.exit(2)
    except (KernelError, LockError, RestartWanted) as error:
        click.echo(f"closeby: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
