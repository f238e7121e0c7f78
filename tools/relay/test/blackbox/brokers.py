# SPDX-License-Identifier: GPL-2.0
"""Clusters of real Kafka brokers on the loopback, which tests may kill, stop and fill up.

tools/vm/setup kafka gets the jars; need() skips a test where there are none. For a test:

    with brokers.Brokers() as kafka:            # three brokers, 3.9
        kafka.make_topics({"orders": 12})
        victim = kafka.leader("orders", 0)
        kafka.kill(victim)                      # kill -9
        kafka.start(victim)                     # waits until it is a member again
        kafka.wait_isr()

Each broker is a controller as well (KRaft), with a directory DIR/ID of its own: "data", its
properties, "server.log", and "out", which has what the JVM says.

 1. Ports are chosen when the cluster is created, and stay. A socket that does not listen is bound
    to each of them until the cluster is closed: brokers can bind the port as well, as both set
    SO_REUSEADDR, but nobody else is given it, while a broker is down either.
 2. No broker outlives this process, however it ends: the kernel kills it together with the thread
    that has started it (setpriv --pdeathsig). So one thread starts all of them, and lives as long
    as the process. A small file system belongs to a mount namespace, which ends like this too.
 3. A start needs no run of StorageTool: the few files that it would write are the same for all
    brokers, but for ids. They are in the cache, like an archive of the classes that a broker
    loads, which makes starts quicker (class data sharing).

What librdkafka in Debian 12 cannot ask of brokers, Admin.java does. It is a process that is
started when it is first needed, and answers in milliseconds from then on.
"""

import base64
import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import paths  # pylint: disable=unused-import
from confluent_kafka import Consumer, KafkaException, Producer, libversion
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

import process
from cluster import Cluster
from tap import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "twheel")
VERSIONS = ("3.9", "4")
# The limit of every wait: the machine is shared, and stands still at times.
PATIENCE_S = 300
# Clients of tests that look for a broker shall not wait long before they try again.
CLIENT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "log_level": 0,
          "socket.timeout.ms": 10000}

# SCRAM with brokers 4.x works from librdkafka 2.6.1 on.
SCRAM_FIXED = 0x020601ff

# Little memory, and a quick start. Without the last one, code that runs for long gets faster.
JVM = ("-XX:+UseSerialGC", "-Xms96m", "-Xmx320m", "-Xss512k", "-XX:-UsePerfData",
       "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
QUICK_START = ("-XX:TieredStopAtLevel=1",)

PROPERTIES = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map":
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "initial.broker.registration.timeout.ms": PATIENCE_S * 1000,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "log.segment.bytes": 1048576,
    "log.index.size.max.bytes": 1048576,
    "log.retention.check.interval.ms": 1000,
    "log.segment.delete.delay.ms": 1000,
    "log.cleaner.backoff.ms": 1000,
    "log.cleaner.dedupe.buffer.size": 8388608,
}

# Only the line that tells the end of a start is wanted at the level INFO.
LOG = {
    "3.9": """log4j.rootLogger={level}, file
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={file}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d %p %m (%c)%n
""",
    "4": """appender.file.type=File
appender.file.name=file
appender.file.fileName={file}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %m (%c)%n
rootLogger.level={level}
rootLogger.appenderRef.file.ref=file
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
""",
}
LOG_OPTION = {"3.9": "-Dlog4j.configuration=file:", "4": "-Dlog4j2.configurationFile="}
STARTED = "Kafka Server started"

# The thread that all processes have as their parent; see 2. above.
launcher = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="launcher")


def launch(command, **options):
    """subprocess.Popen of a command that ends with this process, in a session of its own."""
    command = ["setpriv", "--pdeathsig", "KILL", *command]
    # pylint: disable=consider-using-with
    return launcher.submit(subprocess.Popen, command, start_new_session=True, **options).result()


def wait_for(condition, text, seconds=PATIENCE_S):
    """Wait until the condition is true; its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise process.NotUp(f"not within {seconds} s: {text()}")
        time.sleep(0.02)
    return value


def new_id():
    """An id in the form of Kafka's."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def write(path, text):
    """Make a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    """The text of a file; nothing if it does not exist."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def digest(*texts):
    """A name that changes with the texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def as_lines(properties):
    """A file of properties."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def need(version="3.9"):
    """Skip the test if this machine cannot run these brokers."""
    if not os.path.exists(os.path.join(CACHE, f"kafka-{version}", "version")):
        raise Skip(f"kafka {version} is not here; tools/vm/setup kafka gets it")
    for program in ("java", "javac", "jar", "setpriv"):
        if not shutil.which(program):
            raise Skip(f"there is no {program}; tools/vm/setup kafka gets it")


class Installation:
    """The jars of a version, and what is made from them once; see 3. above."""

    def __init__(self, version):
        need(version)
        self.version = version
        self.directory = os.path.join(CACHE, f"kafka-{version}")
        self.release = read(os.path.join(self.directory, "version")).strip()
        java = subprocess.run(["java", "-version"], capture_output=True, text=True,
                              check=True).stderr
        key = digest(java, " ".join(JVM), read(os.path.join(self.directory, "sha256")))
        self.ready = os.path.join(CACHE, f"kafka-{version}-ready-{key[:12]}")
        self.archive = os.path.join(self.ready, "classes.jsa")
        self.formatted = os.path.join(self.ready, "data")

    def class_path(self):
        """Always in the same order, as the archive demands."""
        jars = sorted(name for name in os.listdir(self.directory) if name.endswith(".jar"))
        return ":".join(os.path.join(self.directory, jar) for jar in jars)

    def java(self, *options, more=""):
        """The words of a command, without the class to be run. The archive demands that the
        class path begins as it did then; @more is what follows."""
        return ["java", *JVM, *options, "-cp", self.class_path() + more]

    def prepare(self):
        """Make these files, if they are not there for these jars and this JVM."""
        with open(os.path.join(CACHE, f".lock.kafka-{self.version}-ready"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(self.ready):
                return
            print(f"brokers: preparing kafka {self.version}, once", file=sys.stderr)
            prefix = f".tmp.kafka-{self.version}-ready."
            for name in os.listdir(CACHE):
                if name.startswith(prefix):
                    shutil.rmtree(os.path.join(CACHE, name), ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=prefix, dir=CACHE) as directory:
                ready = os.path.join(directory, "ready")
                os.mkdir(ready)
                self.format(directory, os.path.join(ready, "data"))
                self.make_archive(os.path.join(directory, "work"), os.path.join(ready, "data"),
                                  os.path.join(ready, "classes.jsa"))
                os.rename(ready, self.ready)

    def admin_jar(self):
        """The path of Admin.java when it is compiled."""
        source = os.path.join(HERE, "Admin.java")
        path = os.path.join(self.ready, f"admin-{digest(read(source))[:16]}.jar")
        if not os.path.exists(path):
            with tempfile.TemporaryDirectory(prefix="twheel-kafka-", dir=self.ready) as directory:
                classes = os.path.join(directory, "classes")
                jar = os.path.join(directory, "admin.jar")
                subprocess.run(["javac", "-d", classes, "-cp", self.class_path(), source],
                               check=True)
                subprocess.run(["jar", "-c", "-f", jar, "-C", classes, "."], check=True)
                os.rename(jar, path)
        return path

    def format(self, directory, data, features=()):
        """Let StorageTool write what all new brokers have: the levels of features."""
        path = os.path.join(directory, "properties")
        write(path, as_lines(PROPERTIES | {
            "node.id": 1, "log.dirs": data, "controller.quorum.voters": "1@127.0.0.1:1",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:1"}))
        words = [word for feature in features for word in ("--feature", feature)]
        done = subprocess.run(
            [*self.java(*QUICK_START), "kafka.tools.StorageTool", "format", "-t", new_id(),
             "-c", path, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise process.NotUp(f"StorageTool: {done.stdout}{done.stderr}")
        os.unlink(os.path.join(data, "meta.properties"))

    def make_archive(self, directory, formatted, archive):
        """Let a broker work a little, and archive the classes that it has loaded."""
        with Brokers(1, version=self, directory=directory, formatted=formatted,
                     jvm=[*QUICK_START, f"-XX:ArchiveClassesAtExit={archive}"]) as one:
            one.make_topics({"topic": 1})
            for number in range(2):
                producer = Producer(one.client({"transactional.id": "id"}))
                producer.init_transactions(PATIENCE_S)
                producer.begin_transaction()
                producer.produce("topic", str(number))
                producer.commit_transaction(PATIENCE_S)
            consumer = Consumer(one.client({"group.id": "group", "auto.offset.reset": "earliest"}))
            consumer.subscribe(["topic"])
            wait_for(lambda: consumer.poll(1), lambda: "a record")
            consumer.commit(asynchronous=False)
            consumer.close()
            one.stop(1)


class Broker:
    """A process, and its directory. Clusters do the rest."""

    def __init__(self, number, directory):
        self.id = number
        self.directory = os.path.join(directory, str(number))
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "server.log")
        self.out = os.path.join(self.directory, "out")
        self.properties = os.path.join(self.directory, "server.properties")
        self.log_properties = os.path.join(self.directory, "log.properties")
        self.ports = {}
        self.process = None
        self.paused = False
        self.disk = None
        self.begun = 0
        os.makedirs(self.data)

    def runs(self):
        """Is there a process?"""
        return self.process is not None and self.process.poll() is None

    def has_started(self):
        """Has it told so since its last start? Then the cluster has taken it as a member."""
        if not self.runs():
            raise process.NotUp(f"broker {self.id} has ended: {self.said()}")
        with contextlib.suppress(FileNotFoundError), open(self.log, "rb") as log:
            log.seek(self.begun)
            return STARTED.encode() in log.read()
        return False

    def said(self):
        """The ends of its logs."""
        return read(self.out)[-2000:] + read(self.log)[-8000:]

    def end(self, number, seconds=None):
        """Send a signal, and wait for the end."""
        if self.process is None:
            return
        self.process.send_signal(number)
        if number != signal.SIGKILL and self.paused:
            self.process.send_signal(signal.SIGCONT)
        self.process.wait(seconds)
        self.process = None
        self.paused = False

    def path(self, *words):
        """A path in its directory of data, which may be a file system that only it can see."""
        root = f"/proc/{self.disk.pid}/root" if self.disk else ""
        return os.path.join(root + self.data, *words)


class Admin:
    """The process of Admin.java."""

    def __init__(self, installation, address, directory):
        self.log = os.path.join(directory, "admin.log")
        self.lock = threading.Lock()
        config = os.path.join(directory, "admin-log.properties")
        write(config, LOG[installation.version].format(level="ERROR", file=self.log))
        self.installation = installation
        self.address = address
        self.config = config
        self.process = None

    def command(self):
        """The words of its command line."""
        installation = self.installation
        return [*installation.java(
            *QUICK_START, f"-XX:SharedArchiveFile={installation.archive}",
            LOG_OPTION[installation.version] + self.config,
            more=f":{installation.admin_jar()}"), "Admin", self.address]

    def call(self, operation, **arguments):
        """Let it do something; the answer. Errors of Kafka are KafkaError."""
        with self.lock:
            if self.process is None:
                with open(self.log, "ab") as log:
                    self.process = launch(self.command(), stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=log, text=True)
            self.process.stdin.write(json.dumps({"operation": operation} | arguments) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        if not line:
            raise KafkaError(f"{operation}: Admin.java has ended: {read(self.log)[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise KafkaError(f"{operation} {arguments}: {answer['error']}")
        return answer.get("value")

    def close(self):
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


class KafkaError(Exception):
    """What brokers have answered to Admin.java."""


class Brokers(Cluster):
    """A cluster, which is up when this has been created.

    @brokers is their number, and their ids are 1 to that. @version is "3.9" or "4".
    @directory is temporary by default. @properties are for all brokers, and @each has those of
    one: {id: {name: value}}. @secure adds a listener with SASL_SSL and SCRAM, and the authorizer
    of Kafka: users may do nothing but what allow() has allowed. Who comes without TLS may do all.
    @disks are small file systems for data: {id: bytes}. @features are levels such as
    "transaction.version=0". @jvm are options of Java. @formatted is for the first start of all.
    """

    name = "kafka"

    def __init__(self, brokers=3, *, version="3.9", directory=None, properties=(), each=(),
                 secure=False, disks=(), features=(), formatted=None, jvm=QUICK_START,
                 level="WARN"):
        super().__init__()
        self.installation = version
        if isinstance(version, str):
            self.installation = Installation(version)
            self.installation.prepare()
            jvm = [*jvm, f"-XX:SharedArchiveFile={self.installation.archive}"]
        self.version = self.installation.version
        self.temporary = None
        if directory is None:
            directory = self.temporary = tempfile.mkdtemp(prefix="twheel-kafka-")
        self.directory = os.path.abspath(directory)
        self.jvm = list(jvm)
        self.secure = secure
        self.reserved = []
        self.clients = {}
        self.brokers = {}
        self.admin = None
        try:
            for number in range(1, brokers + 1):
                self.brokers[number] = Broker(number, self.directory)
            self.reserve_ports()
            self.address = self.addresses_of("PLAINTEXT")
            self.secure_address = self.addresses_of("SASL_SSL")
            self.admin = Admin(self.installation, self.address, self.directory)
            if secure:
                self.make_certificate()
            for number, size in dict(disks).items():
                self.make_disk(self.brokers[number], size)
            self.format(features, formatted)
            for number, broker in self.brokers.items():
                self.configure(broker, dict(properties) | dict(dict(each).get(number, {})), level)
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- before the start ---------------------------------------------------

    def reserve_ports(self):
        """See 1. above."""
        for broker in self.brokers.values():
            for listener in ("PLAINTEXT", "CONTROLLER", "SASL_SSL"):
                sock = socket.socket()
                sock.bind(("127.0.0.1", 0))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                broker.ports[listener] = sock.getsockname()[1]
                self.reserved.append(sock)

    def addresses_of(self, listener):
        """All of them, as clients want them."""
        return ",".join(f"127.0.0.1:{broker.ports[listener]}" for broker in self.brokers.values())

    def addresses(self):
        return self.address.split(",")

    def make_certificate(self):
        """One for all brokers, which is its own authority."""
        self.certificate = os.path.join(self.directory, "certificate.pem")
        key = os.path.join(self.directory, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", key, "-out", self.certificate], check=True,
                       capture_output=True)
        write(os.path.join(self.directory, "keystore.pem"), read(key) + read(self.certificate))

    def make_disk(self, broker, size):
        """A file system for the data of a broker, in a mount namespace, which a process holds."""
        command = f"mount -t tmpfs -o size={size} twheel {shlex.quote(broker.data)}"
        broker.disk = launch(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                              f"{command} && echo up && exec sleep infinity"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if broker.disk.stdout.readline() != "up\n":
            raise Skip(f"no small file system: {broker.disk.stderr.read().strip()}")

    def resize_disk(self, number, size):
        """Change the size of a small file system."""
        broker = self.broker(number)
        subprocess.run(["nsenter", "-t", str(broker.disk.pid), "-m", "mount", "-o",
                        f"remount,size={size}", broker.data], check=True)

    def format(self, features, formatted):
        """What StorageTool would do for each broker."""
        cluster_id = new_id()
        with tempfile.TemporaryDirectory(prefix="twheel-kafka-") as directory:
            formatted = formatted or self.installation.formatted
            if features:
                formatted = os.path.join(directory, "data")
                self.installation.format(directory, formatted, features)
            for broker in self.brokers.values():
                shutil.copytree(formatted, broker.path(), dirs_exist_ok=True)
                write(broker.path("meta.properties"), as_lines({
                    "version": 1, "cluster.id": cluster_id, "node.id": broker.id,
                    "directory.id": new_id()}))

    def configure(self, broker, properties, level):
        """Write the files of properties."""
        most = min(3, len(self.brokers))
        enough = min(2, len(self.brokers))
        listeners = ["PLAINTEXT", "SASL_SSL"] if self.secure else ["PLAINTEXT"]
        advertised = ",".join(f"{name}://127.0.0.1:{broker.ports[name]}" for name in listeners)
        own = {
            "node.id": broker.id,
            "log.dirs": broker.data,
            "controller.quorum.voters": ",".join(
                f"{other.id}@127.0.0.1:{other.ports['CONTROLLER']}"
                for other in self.brokers.values()),
            "listeners": f"{advertised},CONTROLLER://127.0.0.1:{broker.ports['CONTROLLER']}",
            "advertised.listeners": advertised,
            "default.replication.factor": most,
            "min.insync.replicas": enough,
            "offsets.topic.replication.factor": most,
            "transaction.state.log.replication.factor": most,
            "transaction.state.log.min.isr": enough,
        }
        if self.secure:
            own |= {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": os.path.join(self.directory, "keystore.pem"),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                **{f"listener.name.sasl_ssl.{name}.sasl.jaas.config":
                   "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                   for name in ("scram-sha-256", "scram-sha-512")},
            }
        write(broker.properties, as_lines(PROPERTIES | own | properties))
        write(broker.log_properties, LOG[self.version].format(level=level, file=broker.log))

    # --- brokers --------------------------------------------------------------

    def broker(self, number):
        """The one with this id."""
        if number not in self.brokers:
            raise ValueError(f"there is no broker {number}; ids are 1 to {len(self.brokers)}")
        return self.brokers[number]

    def launch(self, number):
        """Start a broker, and do not wait until it is up."""
        broker = self.broker(number)
        if broker.runs():
            raise ValueError(f"broker {number} runs already")
        before = ["nsenter", "-t", str(broker.disk.pid), "-m"] if broker.disk else []
        broker.begun = os.path.getsize(broker.log) if os.path.exists(broker.log) else 0
        broker.paused = False
        with open(broker.out, "ab") as out:
            broker.process = launch(
                [*before, *self.installation.java(
                    *self.jvm, f"{LOG_OPTION[self.version]}{broker.log_properties}"),
                 "kafka.Kafka", broker.properties],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=os.environ | {"MALLOC_ARENA_MAX": "2"})

    def start(self, *numbers):
        """Start brokers, by default all that do not run, and wait until they are members."""
        numbers = numbers or [broker.id for broker in self.brokers.values() if not broker.runs()]
        for number in numbers:
            self.launch(number)
        self.wait_up(*numbers)

    def wait_up(self, *numbers):
        """Wait until these brokers, by default all, are up, and all that are know all of them."""
        numbers = numbers or list(self.brokers)
        for number in numbers:
            broker = self.broker(number)
            wait_for(broker.has_started, self.said)

        def wrong(metadata):
            missing = set(numbers) - set(metadata.brokers)
            return missing and f"it does not know brokers {missing}"
        self.wait_for_all(wrong)

    def wait_for_all(self, wrong):
        """Wait until, of the metadata of each broker that runs, wrong() has nothing to say."""
        def look(number):
            try:
                return wrong(self.metadata(number))
            except KafkaException as error:
                return str(error)
        for number in self.running():
            wait_for(lambda one=number: not look(one),
                     lambda one=number: f"by broker {one}: {look(one)}")

    def running(self):
        """The ids of those that run, and are not paused."""
        return [broker.id for broker in self.brokers.values()
                if broker.runs() and not broker.paused]

    def pid(self, number):
        """Its process."""
        return self.broker(number).process.pid

    def kill(self, number):
        """kill -9. The others notice after broker.session.timeout.ms, 9 s by default."""
        self.broker(number).end(signal.SIGKILL)

    def stop(self, number, seconds=PATIENCE_S):
        """SIGTERM, and wait for its end. It never ends without a majority of the brokers."""
        self.broker(number).end(signal.SIGTERM, seconds)

    def pause(self, number):
        """SIGSTOP."""
        self.broker(number).paused = True
        self.broker(number).process.send_signal(signal.SIGSTOP)

    def resume(self, number):
        """SIGCONT."""
        self.broker(number).process.send_signal(signal.SIGCONT)
        self.broker(number).paused = False

    def restart(self, number):
        """SIGTERM, and start it again."""
        self.stop(number)
        self.start(number)

    def close(self):
        """Kill what runs, and delete a temporary directory."""
        super().close()
        for broker in self.brokers.values():
            broker.end(signal.SIGKILL)
            if broker.disk:
                broker.disk.kill()
                broker.disk.wait()
                broker.disk.stdout.close()
                broker.disk.stderr.close()
                broker.disk = None
        if self.admin:
            self.admin.close()
        self.clients.clear()
        for sock in self.reserved:
            sock.close()
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def said(self):
        return "\n".join(f"broker {broker.id}: {broker.said()}" for broker in self.brokers.values())

    def memory(self):
        """Bytes that the brokers have resident."""
        total = 0
        for number in self.running():
            for line in read(f"/proc/{self.pid(number)}/status").splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1]) * 1024
        return total

    # --- questions ------------------------------------------------------------

    def need_scram(self):
        """Skip, unless clients can log in by SCRAM."""
        release, number = libversion()
        if self.version == "4" and number < SCRAM_FIXED:
            raise Skip(f"librdkafka {release} sends a wrong nonce, which Kafka 4 refuses")

    def client(self, options=(), user=None, password=None):
        """Options of a client of librdkafka; with a user, of the listener with TLS."""
        if user is None:
            return CLIENT | {"bootstrap.servers": self.address} | dict(options)
        self.need_scram()
        return CLIENT | {
            "bootstrap.servers": self.secure_address, "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.certificate, "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": user, "sasl.password": password} | dict(options)

    def metadata(self, number=None, topic=None):
        """The cluster as a broker sees it; by default as any sees it."""
        if number not in self.clients:
            address = (self.address if number is None else
                       f"127.0.0.1:{self.broker(number).ports['PLAINTEXT']}")
            self.clients[number] = AdminClient(CLIENT | {"bootstrap.servers": address})
        return self.clients[number].list_topics(topic, timeout=10)

    def partitions(self, topic):
        """{number: what a running broker knows of this partition: leader, replicas, isrs}."""
        def look():
            for number in self.running():
                with contextlib.suppress(KafkaException, KeyError):
                    return self.metadata(number).topics[topic].partitions
            return None
        return wait_for(look, lambda: f"no {topic}")

    def leader(self, topic, partition=0):
        """The id of the leader, among the brokers that run. One that was killed is the leader
        until the others notice."""
        def look():
            parts = self.partitions(topic)
            leader = parts[partition].leader if partition in parts else None
            return leader if leader in self.running() else None
        return wait_for(look, lambda: f"no leader of {topic} [{partition}]")

    def hashed(self, topic, text):
        """The leader of the partition of Kafka's own topic that a name belongs to: the absolute
        value of Java's String.hashCode(), by the number of partitions."""
        number = 0
        data = text.encode("utf-16-be")
        for index in range(0, len(data), 2):
            number = (number * 31 + int.from_bytes(data[index:index + 2], "big")) & 0xffffffff
        number = min(number, (1 << 32) - number)
        return self.leader(topic, number % len(self.partitions(topic)))

    def coordinator(self, group):
        """The id of the coordinator of a consumer group."""
        return self.hashed("__consumer_offsets", group)

    def transaction_coordinator(self, transactional_id):
        """The id of the coordinator of a transactional id."""
        return self.hashed("__transaction_state", transactional_id)

    def controller(self):
        """The id of the active controller, by the files of those that vote."""
        def look():
            newest = (0, None)
            for number in self.running():
                text = read(self.broker(number).path("__cluster_metadata-0", "quorum-state"))
                with contextlib.suppress(ValueError):
                    state = json.loads(text)
                    newest = max(newest, (state["leaderEpoch"], state["leaderId"]))
            return newest[1] if newest[1] in self.running() else None
        return wait_for(look, lambda: "an active controller")

    def wait_isr(self, *topics):
        """Wait until all replicas of these topics, by default of all, are in sync, by all
        brokers that run."""
        def wrong(metadata):
            for name in topics or metadata.topics:
                if name not in metadata.topics:
                    return f"{name} is missing"
                for one in metadata.topics[name].partitions.values():
                    if sorted(one.isrs) != sorted(one.replicas) or one.leader not in self.brokers:
                        return f"{name} [{one.id}] has {one.isrs} of {one.replicas}"
            return None
        self.wait_for_all(wrong)

    # --- changes ----------------------------------------------------------------

    def make_topics(self, topics, replicas=-1, config=()):
        """{name: partitions}; waits until all brokers know them."""
        new = [NewTopic(topic, partitions, replicas, config=dict(config))
               for topic, partitions in topics.items()]
        self.metadata()
        asked = self.clients[None].create_topics(new, operation_timeout=60,
                                                 request_timeout=PATIENCE_S)
        for made in asked.values():
            made.result(2 * PATIENCE_S)
        for topic, partitions in topics.items():
            self.wait_partitions(topic, partitions)

    def wait_partitions(self, topic, partitions):
        """Wait until all brokers that run know so many partitions, with leaders."""
        def wrong(metadata):
            if topic not in metadata.topics:
                return f"there is no {topic}"
            parts = metadata.topics[topic].partitions.values()
            leaders = [one.leader for one in parts if one.leader in self.brokers]
            return len(leaders) != partitions and f"{topic} has {len(leaders)} leaders"
        self.wait_for_all(wrong)

    def delete_topics(self, *topics):
        """Delete topics; waits until no broker knows them."""
        self.metadata()
        for gone in self.clients[None].delete_topics(list(topics), operation_timeout=60).values():
            gone.result(PATIENCE_S)
        self.wait_for_all(lambda metadata: set(topics) & set(metadata.topics))

    def add_partitions(self, topic, partitions):
        """Have so many of them in all."""
        self.metadata()
        new = [NewPartitions(topic, partitions)]
        self.clients[None].create_partitions(new, operation_timeout=60)[topic].result(PATIENCE_S)
        self.wait_partitions(topic, partitions)

    def configure_topic(self, topic, config):
        """Change some settings of a topic; None is for the default. Waits until brokers know."""
        self.admin.call("configure", kind="TOPIC", name=topic, config=dict(config))
        self.metadata()
        resource = ConfigResource("topic", topic)

        def known():
            # Each question goes to one of them.
            answers = [self.clients[None].describe_configs([resource])[resource].result(PATIENCE_S)
                       for _ in range(2 * len(self.brokers))]
            return all(answer[name].value == str(value) for answer in answers
                       for name, value in config.items() if value is not None)
        wait_for(known, lambda: f"not all brokers know {config} of {topic}")

    def configure_broker(self, number, config):
        """Change some settings of a broker while it runs; "" is for all brokers."""
        self.admin.call("configure", kind="BROKER", name=str(number), config=dict(config))

    def delete_records(self, topic, offsets):
        """Delete records before {partition: offset}; -1 is for all. The new first offsets."""
        answer = self.admin.call("deleteRecords", topic=topic,
                                 offsets={str(part): offset for part, offset in offsets.items()})
        return {int(partition): offset for partition, offset in answer.items()}

    def set_quota(self, quotas, client_id=None, user=None):
        """{"producer_byte_rate": 100000}; None removes one. For a client.id, a user, or both."""
        entity = {"client-id": client_id, "user": user}
        self.admin.call("quota", quotas=dict(quotas),
                        entity={kind: name for kind, name in entity.items() if name is not None})

    def add_user(self, user, password):
        """A user by SCRAM-SHA-256 and -512."""
        self.admin.call("addUser", user=user, password=password)

    def allow(self, user, operations, kind, name, prefixed=False):
        """Allow a user operations such as ["READ", "DESCRIBE"] on a TOPIC, GROUP, CLUSTER
        (whose name is kafka-cluster) or TRANSACTIONAL_ID."""
        self.admin.call("allow", user=user, operations=list(operations), kind=kind, name=name,
                        prefixed=prefixed)

    def disallow(self, user, operations, kind, name, prefixed=False):
        """Take back what was allowed with the same words."""
        self.admin.call("disallow", user=user, operations=list(operations), kind=kind, name=name,
                        prefixed=prefixed)

    def transactions(self):
        """{transactional id: state}, such as "Ongoing"."""
        return self.admin.call("transactions")

    def features(self):
        """The levels of features that are final, such as {"transaction.version": 2}."""
        return self.admin.call("features")
