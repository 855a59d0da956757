"""EFFECT: the announcer's metrics. None is labelled by an address: there may be thousands."""

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.3, 2.0, 5.0, 10.0, 30.0)

OWNED = Gauge("closeby_announcer_owned_addresses", "Addresses that this node answers for, in any way")
UNOWNED = Gauge("closeby_announcer_unowned_addresses", "Addresses of the table that nobody is known to answer for")
CONFLICTING = Gauge("closeby_announcer_conflicting_addresses", "Addresses that a foreign host answered for lately")
MEMBERS = Gauge("closeby_announcer_members", "Other announcers that are heard", ["wire"])
NOTES = Counter("closeby_announcer_notes_total", "What happened to ownership and members, by stable code", ["note"])
CONFLICTS = Counter("closeby_announcer_conflicts_total", "Times a foreign host answered for one of our addresses")
UNOWNED_SECONDS = Histogram(
    "closeby_announcer_unowned_seconds",
    "From the last sign of the owner before to our taking its address",
    buckets=_SECONDS,
)
REPLIES = Counter("closeby_announcer_replies_total", "Answers to questions about our addresses", ["protocol"])
ANNOUNCEMENTS = Counter(
    "closeby_announcer_announcements_total", "Gratuitous packets, after a change or once a minute", ["protocol", "why"]
)
TOLD = Counter("closeby_announcer_clients_told_total", "Clients told that a shared address is ours", ["protocol"])
LATE_SECONDS = Histogram("closeby_announcer_late_seconds", "How late a wake-up came", buckets=_SECONDS)
SENT = Counter("closeby_announcer_messages_sent_total", "Datagrams to other announcers", ["type"])
REFUSED = Counter("closeby_announcer_messages_refused_total", "Datagrams that weren't believed", ["reason"])
PROXY_UP = Gauge("closeby_announcer_proxy_connected", "1 while this node's proxy tells what it serves")
TABLE_AGE = Gauge("closeby_announcer_table_age_seconds", "How old the proxy's view of the API is")
