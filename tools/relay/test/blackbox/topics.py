# SPDX-License-Identifier: GPL-2.0
"""The relay's topics, with real brokers: how they are created, and what is said about those that
are not as they should be. The mock has neither CreateTopics nor settings of topics."""

import re
import subprocess
import uuid

from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewPartitions, NewTopic

from cluster import RELAY, open_cluster
from ledger import PATIENCE_S, wait_for
from scene import DAY_S, DEBUG, Relay
from suite import suite
from tap import Skip, equal, holds

MB8 = str(8 << 20)
WEEK_MS = 7 * DAY_S * 1000
# With this, what is checked each minute and each hour is checked each two seconds.
OFTEN = ("--time-scale", "3600")
WIDTHS = [10, 60, *(DAY_S << n for n in range(5))]
# Each has as many partitions as the topic of delays.
FOLLOWERS = ["-done", "-cancelled", *(f"-b{width}s" for width in WIDTHS)]
CHECKED = "the topics are checked"


class Topics:
    """The topics of one relay, which do not exist at first."""

    def __init__(self):
        self.cluster = open_cluster()
        if self.cluster.is_mock:
            self.cluster.close()
            raise Skip("the mock cannot create topics, and they have no settings")
        # One for each broker: what changes, some brokers know later than others.
        self.admins = [AdminClient({"bootstrap.servers": address, "log_level": 0})
                       for address in self.cluster.addresses()]
        self.admin = self.admins[0]
        self.name = f"delays-{uuid.uuid4().hex[:8]}"
        self.relays = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for relay in self.relays:
            relay.close()
        metadata = self.admin.list_topics(timeout=60)
        mine = [topic for topic in metadata.topics if topic.startswith(self.name)]
        if mine:
            self.admin.delete_topics(mine)

    def options(self, *more):
        """Of all relays here."""
        return ["--group", self.name, "--horizon", f"{DAY_S}s", *DEBUG, *more]

    def start(self, *more):
        """A relay that runs."""
        relay = Relay(self.cluster.address, self.name, self.options(*more))
        self.relays.append(relay)
        return relay.start()

    def outcome(self, *more):
        """The exit status and the log of a relay that ends by itself."""
        command = [RELAY, "--brokers", self.cluster.address, "--topic", self.name, "--wheel",
                   "process", *self.options(*more)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stderr

    def create(self):
        """Let a relay create the topics, with two partitions."""
        relay = self.start("--create", "--partitions", "2")
        relay.wait_until_it_says(CHECKED)
        equal(relay.stop(), 0, "exit status")
        return relay.said()

    # --- what the brokers have ----------------------------------------------------------------

    def everywhere(self, condition, text):
        """Wait until the condition is true by each broker."""
        for admin in self.admins:
            wait_for(lambda admin=admin: condition(admin), text)

    def metadata(self, admin=None):
        """{suffix: (partitions, least number of replicas)}."""
        topics = (admin or self.admin).list_topics(timeout=60).topics
        return {name.removeprefix(self.name): (len(topic.partitions),
                                               min(len(one.replicas)
                                                   for one in topic.partitions.values()))
                for name, topic in topics.items()
                if name.startswith(self.name) and topic.partitions}

    def most_replicas(self):
        """What a topic should have."""
        return min(3, len(self.admin.list_topics(timeout=60).brokers))

    def entries(self, suffix, admin=None):
        """The settings of a topic."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name + suffix)
        return list((admin or self.admin).describe_configs([resource]).values())[0].result(60)

    def settings(self, suffix, admin=None):
        """{name: value}."""
        return {name: entry.value for name, entry in self.entries(suffix, admin).items()}

    def change(self, suffix, **settings):
        """Change settings of a topic; _ is for a point in their names."""
        own = {name: entry.value for name, entry in self.entries(suffix).items()
               if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
        own |= {name.replace("_", "."): value for name, value in settings.items()}
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name + suffix, set_config=own)
        list(self.admin.alter_configs([resource]).values())[0].result(60)
        self.everywhere(lambda admin: own.items() <= self.settings(suffix, admin).items(),
                        f"{settings}")

    def add_partitions(self, suffix, partitions):
        """Have so many in all."""
        topic = self.name + suffix
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)

    def make(self, suffix, partitions, **settings):
        """Make a topic by hand, with one replica."""
        topic = self.name + suffix
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(60)


def wait_for_checks(relay, more):
    """Wait until the topics were checked @more times."""
    before = relay.said_now().count(CHECKED)
    wait_for(lambda: relay.said_now().count(CHECKED) >= before + more, f"{more} checks")


def complaints(said):
    """The lines about topics."""
    return [line.removeprefix("twheel-relay: ") for line in said.splitlines()
            if re.search("should have|must have|there is no topic", line)]


# --- creating -----------------------------------------------------------------------------

@suite.together
def topics_are_created_with_replicas_and_settings():
    with Topics() as topics:
        said = topics.create()
        replicas = topics.most_replicas()
        equal(topics.metadata(), {suffix: (2, replicas)
                                  for suffix in ["", ".invalid", *FOLLOWERS]})
        equal(complaints(said), [])
        enough = {"min.insync.replicas": "2" if replicas == 3 else "1"}
        waiting = enough | {"cleanup.policy": "delete", "retention.bytes": "-1",
                            "message.timestamp.type": "LogAppendTime"}
        compacted = enough | {"cleanup.policy": "compact", "segment.bytes": MB8,
                              "segment.ms": "600000", "min.compaction.lag.ms": "60000",
                              "min.cleanable.dirty.ratio": "0.1"}
        expected = {"": waiting | {"retention.ms": str(2 * DAY_S * 1000 + WEEK_MS)},
                    "-done": compacted, "-cancelled": compacted,
                    ".invalid": enough | {"cleanup.policy": "delete", "max.message.bytes": MB8}}
        for width in WIDTHS:
            expected[f"-b{width}s"] = waiting | {
                "retention.ms": str(2 * width * 1000 + WEEK_MS), "max.message.bytes": MB8}
        for suffix, settings in expected.items():
            seen = topics.settings(suffix)
            equal({name: seen[name] for name in settings}, settings, f"settings of {suffix}")
        return f"{len(expected)} topics with {replicas} replicas"


@suite.together
def topics_as_they_are_created_are_right_at_each_check():
    with Topics() as topics:
        relay = topics.start("--create", *OFTEN)
        wait_for_checks(relay, 3)
        equal(complaints(relay.said()), [])
        holds("cannot read the settings" not in relay.said(), relay.said())
        equal(relay.stop(), 0, "exit status")


@suite.together
def topics_have_as_many_replicas_as_the_option_says():
    with Topics() as topics:
        relay = topics.start("--create", "--partitions", "1", "--replicas", "1", *OFTEN)
        wait_for_checks(relay, 1)
        equal(set(topics.metadata().values()), {(1, 1)})
        equal(complaints(relay.said()), [])
        equal(relay.stop(), 0, "exit status")
        if topics.most_replicas() > 1:
            relay = topics.start()
            relay.wait_until_it_says(f"{topics.name}-done has replication factor 1, and should "
                                     f"have {topics.most_replicas()}")
            equal(relay.stop(), 0, "exit status")


@suite.together
def more_replicas_than_brokers_are_an_error():
    with Topics() as topics:
        status, said = topics.outcome("--create", "--replicas", "99")
        equal(status, 1, said)
        holds("eplication factor" in said, said)
        holds(f"there is no topic {topics.name}-done, and --create did not work" in said, said)


# --- settings -----------------------------------------------------------------------------

# With each of these, records would be lost or be delivered again: a suffix, a setting, its value,
# and what it must be.
WRONG = [
    ("", "cleanup.policy", "compact", "delete"),
    (f"-b{DAY_S}s", "cleanup.policy", "compact,delete", "delete"),
    (f"-b{DAY_S}s", "retention.ms", "60000", f"{2 * DAY_S * 1000 + WEEK_MS} or more"),
    ("-done", "cleanup.policy", "delete", "compact"),
    ("-cancelled", "cleanup.policy", "compact,delete", "compact"),
]


@suite.together
def settings_that_would_lose_records_end_the_relay_at_its_start():
    with Topics() as topics:
        topics.create()
        for suffix, name, value, right in WRONG:
            before = topics.settings(suffix)[name]
            topics.change(suffix, **{name: value})
            status, said = topics.outcome()
            equal(status, 1, said)
            equal([line.split(": ", 1)[0] for line in complaints(said)],
                  [f"{topics.name}{suffix} has {name}={value}, and must have {right}"], said)
            topics.change(suffix, **{name: before})


@suite.together
def such_settings_are_said_again_and_again_while_the_relay_runs():
    with Topics() as topics:
        topics.create()
        relay = topics.start(*OFTEN)
        wait_for_checks(relay, 1)
        equal(complaints(relay.said()), [])
        for suffix, name, value, right in WRONG:
            topics.change(suffix, **{name: value})
            words = f"{topics.name}{suffix} has {name}={value}, and must have {right}"
            wait_for(lambda words=words: relay.said().count(words) >= 2, f"twice: {words}")
        wait_for_checks(relay, 1)
        equal(relay.stop(), 0, "exit status")


# The relay runs with these, and warns.
DOUBTFUL = [
    ("", "message.timestamp.type", "CreateTime", "LogAppendTime"),
    ("", "retention.ms", str(WEEK_MS), f"{2 * DAY_S * 1000 + WEEK_MS} or more"),
    ("-b60s", "message.timestamp.type", "CreateTime", "LogAppendTime"),
    ("-b60s", "retention.bytes", "1000000000", "-1"),
    ("-b60s", "retention.ms", "604800000", f"{120000 + WEEK_MS} or more"),
    ("-b10s", "max.message.bytes", "1000000", "1048588 or more"),
    ("-done", "segment.bytes", "1073741824", f"{MB8} or less"),
    ("-done", "segment.ms", "604800000", "600000 or less"),
    ("-done", "min.compaction.lag.ms", "3600000", "60000 or less"),
    ("-cancelled", "min.cleanable.dirty.ratio", "0.5", "0.1 or less"),
]


@suite.together
def other_settings_are_warned_of_at_the_start_and_again_and_again():
    with Topics() as topics:
        topics.create()
        doubtful = list(DOUBTFUL)
        if topics.most_replicas() == 3:
            doubtful.append(("-done", "min.insync.replicas", "1", "2 or more"))
        for suffix, name, value, _ in doubtful:
            topics.change(suffix, **{name: value})
        relay = topics.start(*OFTEN)
        wait_for_checks(relay, 2)
        said = relay.said()
        equal(relay.stop(), 0, "exit status")
        for suffix, name, value, right in doubtful:
            words = f"{topics.name}{suffix} has {name}={value}, and should have {right}"
            holds(said.count(words) >= 2, f"not twice: {words}: {said}")
        kinds = {line.split(": ", 1)[0] for line in complaints(said)}
        equal(len(kinds), len(doubtful), said)


# --- partitions ---------------------------------------------------------------------------

@suite.together
def topics_that_are_missing_are_named_one_by_one():
    with Topics() as topics:
        topics.make("", 2)
        topics.everywhere(lambda admin: "" in topics.metadata(admin), "the topic")
        status, said = topics.outcome()
        equal(status, 1, said)
        missing = re.findall("there is no topic ([^,]*), and --create was not given", said)
        equal(sorted(missing), sorted(topics.name + suffix for suffix in [".invalid", *FOLLOWERS]))


@suite.together
def partitions_that_are_added_while_the_relay_runs_are_added_everywhere_with_create():
    with Topics() as topics:
        relay = topics.start("--create", "--partitions", "2", *OFTEN)
        wait_for_checks(relay, 1)
        topics.add_partitions("", 5)
        relay.wait_until_it_says(f"{topics.name} has 5 partitions now, and had 2|"
                                 f"adding partitions to {topics.name}-done, up to 5")

        def are_there(admin):
            seen = topics.metadata(admin)
            return all(seen[suffix][0] == 5 for suffix in FOLLOWERS)
        topics.everywhere(are_there, "partitions")
        wait_for_checks(relay, 2)
        equal([line for line in complaints(relay.said()) if "should have 5" in line], [])
        equal(topics.metadata()[".invalid"][0], 2)
        equal(relay.stop(), 0, "exit status")


@suite.together
def partitions_that_are_added_while_the_relay_runs_are_said_without_create():
    with Topics() as topics:
        topics.create()
        relay = topics.start(*OFTEN)
        wait_for_checks(relay, 1)
        topics.add_partitions("", 5)
        for suffix in FOLLOWERS:
            relay.wait_until_it_says(f"{topics.name}{suffix} has 2 partitions, and should have 5, "
                                     "and --create was not given: partitions of "
                                     f"{topics.name} from number 2 on wait")
        holds(all(topics.metadata()[suffix][0] == 2 for suffix in FOLLOWERS), topics.metadata())
        equal(relay.stop(), 0, "exit status")


@suite.together
def partitions_can_be_added_to_the_other_topics_first():
    with Topics() as topics:
        topics.create()
        relay = topics.start("--create", "--partitions", "6")
        relay.wait_until_it_says(CHECKED)
        equal(relay.stop(), 0, "exit status")
        # The relay has waited until all brokers know.
        seen = topics.metadata()
        equal({suffix: seen[suffix][0] for suffix in FOLLOWERS}, dict.fromkeys(FOLLOWERS, 6))
        equal((seen[""][0], seen[".invalid"][0]), (2, 2))


@suite.together
def a_topic_that_is_deleted_while_the_relay_runs_is_said():
    with Topics() as topics:
        relay = topics.start("--create", "--partitions", "1", *OFTEN)
        wait_for_checks(relay, 1)
        topics.admin.delete_topics([f"{topics.name}-cancelled"])
        relay.wait_until_it_says(f"there is no topic {topics.name}-cancelled")
        topics.everywhere(lambda admin: "-cancelled" not in topics.metadata(admin), "it is gone")
        wait_for_checks(relay, 2)
        topics.everywhere(lambda admin: "-cancelled" not in topics.metadata(admin), "it is gone")
        equal(relay.stop(), 0, "exit status")
