"""Members that only talk: what they say is what a real announcer takes for a member's."""

from e2e.lan.scale.plan import KEY, WIRE, plan_members, plan_vips
from e2e.lan.scale.puppets import Puppet, deal
from proxy.announcer.datagram import parse_datagram
from proxy.l2.messages import Answer, Beat, Body, Challenge, Claims, Header, Message, Want
from proxy.l2.types import MASK, NODE_NETWORK, MemberId, claim_digest, member_id

MEMBERS = plan_members(30)
VIPS = plan_vips(300)
ME = member_id(MEMBERS[0].node)
PUPPET = MEMBERS[3]


def heard(data: list[bytes]) -> list[Message]:
    found = [parse_datagram(each, WIRE, {1: KEY}) for each in data]
    return [message for message in found if isinstance(message, Message)]


def asked(body: Body) -> Message:
    return Message(Header(ME, 1, 1, 1.0), body, member_id(PUPPET.node))


def test_every_address_is_dealt_to_one_member_and_all_have_as_many() -> None:
    owned = deal(MEMBERS, VIPS)

    assert sorted(key.vip for keys in owned.values() for key in keys) == sorted(VIPS)
    assert {len(keys) for keys in owned.values()} == {len(VIPS) // len(MEMBERS)}


def test_a_heartbeat_names_everybody_else_and_what_its_member_owns() -> None:
    puppet = Puppet(PUPPET, MEMBERS, "02:00:00:00:00:01")
    keys = deal(MEMBERS, VIPS)[puppet.id]
    puppet.claim(keys)

    (beat,) = heard(puppet.beat(WIRE, 5.0))

    assert isinstance(beat.body, Beat)
    assert set(beat.body.ages_s) == {member_id(peer.node) for peer in MEMBERS} - {puppet.id}
    assert (beat.header.digest, beat.header.count) == (
        sum(claim_digest(claim.key, claim.version) for claim in puppet.claims) & MASK,
        len(keys),
    )


def test_a_challenge_is_answered_and_who_wants_claims_gets_all() -> None:
    puppet = Puppet(PUPPET, MEMBERS, "02:00:00:00:00:01")
    puppet.claim(deal(MEMBERS, VIPS)[puppet.id])

    (answer,) = heard(puppet.answer(asked(Challenge(7)), WIRE, 5.0))
    told = heard(puppet.answer(asked(Want()), WIRE, 5.0))

    assert (answer.body, answer.to) == (Answer(7, PUPPET.node), ME)
    entries = [entry for message in told if isinstance(message.body, Claims) for entry in message.body.entries]
    assert set(entries) == set(puppet.claims)
    assert puppet.answer(asked(Beat({}, "", 1)), WIRE, 5.0) == []


def test_what_another_claims_is_yielded() -> None:
    puppet = Puppet(PUPPET, MEMBERS, "02:00:00:00:00:01")
    keys = deal(MEMBERS, VIPS)[puppet.id]
    puppet.claim(keys)

    puppet.yield_keys(set(keys[:3]))

    (beat,) = heard(puppet.beat(WIRE, 5.0))
    assert [claim.key for claim in puppet.claims] == keys[3:]
    assert beat.header.count == len(keys) - 3


def test_numbers_rise_over_channels() -> None:
    puppet = Puppet(PUPPET, MEMBERS, "02:00:00:00:00:01")
    data = [*puppet.beat(WIRE, 1.0), *puppet.beat(WIRE, 2.0)]

    first, second = (message.header.seq for message in heard(data))

    assert first < second
    assert puppet.id != MemberId(0)
    assert puppet.beat(NODE_NETWORK, 3.0)
