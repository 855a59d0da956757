"""Whether two Services may have one address (`allow-shared-ip`). Pure."""

from endpointslice.types import IP
from proxy.addresses.requests import Refusal, Rule, sharing_key
from proxy.addresses.types import Service


def refuse_sharing(ip: IP, holder: Service, asker: Service) -> Refusal | None:
    """Why not, or None: same key, no port of both, and the same backends where only their nodes answer."""
    theirs, own = sharing_key(holder), sharing_key(asker)
    if not theirs or not own:
        who = "has no sharing key" if theirs else f"{holder.name} has none" if own else "neither has a sharing key"
        what = f"{ip} is held by {holder.name}, and " + ("this Service " if theirs else "") + who
        return Refusal(Rule.ADDRESS_IN_USE, what)
    if theirs != own:
        what = f'{ip} is held by {holder.name} with the sharing key "{theirs}", not "{own}"'
        return Refusal(Rule.SHARING_KEY_DIFFERS, what)
    if taken := sorted(holder.ports & asker.ports):
        protocol, port = taken[0]
        return Refusal(Rule.SHARING_PORT_TAKEN, f"{ip} is shared with {holder.name}, which has {protocol} port {port}")
    if holder.backends != asker.backends:
        return Refusal(Rule.SHARING_BACKENDS_DIFFER, _say_backends(ip, holder, asker))
    return None


def _say_backends(ip: IP, holder: Service, asker: Service) -> str:
    if holder.backends and asker.backends:
        why = f'select other pods ("{holder.backends}" and "{asker.backends}")'
    else:
        why = "differ in externalTrafficPolicy"
    rule = "under externalTrafficPolicy Local both must have the same pods"
    return f"{ip} is held by {holder.name}, and {rule}: they {why}"
