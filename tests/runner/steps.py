"""The steps of the proof: what each proves, what it needs, and the commands that it runs.

A step takes at most 30 minutes on two cores that have nothing else to do. It builds what it needs, starts its own
servers and ends them. `minutes` is what it usually takes after the gate has been built.
"""

from dataclasses import dataclass

# The programs of these labels run on a database, or on none.
ON_SQLITE = "^(unit|fuzz|conformance|logic|cli|http|stopping|examples)$"


@dataclass(frozen=True)
class Ctest:
    """Tests that ctest selects: those that have a label for each of `labels`, and none that `without` matches."""

    labels: tuple
    without: tuple = ()
    servers: tuple = ()  # private servers that run meanwhile: mariadb, postgresql, mysql
    durable: bool = False  # the servers wait for the disk
    restartable: bool = False  # the tests may kill the servers
    galera: bool = False  # a cluster of three nodes runs meanwhile
    preset: str = "dev"
    builds: tuple = ()  # targets; by default, tests_<label> of the first label
    parallel: int = 4  # most tests wait for a server most of the time
    environment: tuple = ()  # pairs


@dataclass(frozen=True)
class Script:
    """A script of tests/, after the targets were built."""

    command: tuple
    builds: tuple = ()
    preset: str = "dev"
    environment: tuple = ()


@dataclass(frozen=True)
class Step:
    name: str
    proves: str
    minutes: int
    parts: tuple
    needs: str = ""
    # Tests on brokers, on servers that are killed and on the network may be repeated once. The step says how often.
    repeats: bool = False
    packages: str = "test"  # for install-packages.sh


# Each broker with its title, and the minutes of its step and of its steps with kills.
BROKERS = (("kafka", "Kafka", 5, 16), ("rabbitmq", "RabbitMQ", 3, 8), ("rocketmq", "RocketMQ", 12, 25),
           ("redis", "Redis", 1, 11))
NETWORK_MYSQL = "network, the first time: MySQL"
NETWORK_BROKER = "network, the first time: jars of the broker"
LONG = (("TXINBOX_TEST_LONG", "1"),)
CHAIN = "*a chain of services*"  # a test case of Kafka that takes as long as the others together


def kills(count):
    return (("TXINBOX_BROKER_KILLS", str(count)), ("TXINBOX_BROKER_MESSAGES", "1000000"))


def faults(database):
    on_server = database != "sqlite3"
    needs = NETWORK_MYSQL if database == "mysql" else ""

    def step(name, proves, minutes, label, environment=()):
        part = Ctest((label, database), servers=(database,) if on_server else (), builds=("tests_faults",),
                     environment=environment)
        return Step(f"{name}-{database}", f"{proves}, on {database}", minutes, (part,), needs=needs)

    steps = [step("faults", "every fault at every step of a delivery", 8, "^(two_)?faults$")]
    if on_server:
        steps.append(step("faults-long", "the same in the middle of packets", 10, "^faults$", LONG))
        steps.append(step("two-faults", "every fault after each misbehaviour of a handler", 22, "^two_faults$", LONG))
    return steps


def valgrind(database):
    tests = "conformance and logic" if database == "sqlite3" else "conformance"
    return Step(f"valgrind-{database}", f"no invalid access and no leak: {tests} under Valgrind, on {database}", 20,
                (Script(("tests/valgrind.sh", "--database", database)),))


def storm(database):
    return Step(f"storm-{database}", f"storms of ten minutes on {database}, with kills: nothing lost or doubled", 21,
                (Script(("tests/storm.sh", "--seconds", "600", "--database", database, "build/dev"),
                        builds=("tests_storm",)),),
                needs=NETWORK_MYSQL if database == "mysql" else "")


def sanitizer(name, title, excluded=()):
    """The steps with a sanitizer, without the tests of the excluded labels."""
    without = tuple(f"^(unit_)?{label}$" for label in excluded)
    preset = {"preset": name}
    labels = [label for label in ("unit", "conformance", "logic", "cli", "http", "stopping", "examples")
              if label not in excluded]
    suites = tuple(f"tests_{label}" for label in ("fuzz", *labels))
    brokers = [broker for broker in BROKERS if broker[0] not in excluded]
    return [
        Step(name, f"{', '.join(labels)} on SQLite, with {title}", 9,
             (Ctest((ON_SQLITE, "^(unit|fuzz|sqlite3)$"), without=without, builds=suites, **preset),)),
        Step(f"{name}-servers", f"conformance, http and stopping on MariaDB and PostgreSQL, with {title}", 7,
             (Ctest(("^(conformance|http|stopping)$", "^(mariadb|postgresql)$"), servers=("mariadb", "postgresql"),
                    builds=suites, **preset),)),
        Step(f"{name}-faults", f"faults and storms on SQLite, with {title}", 25,
             (Ctest(("^(faults|torture)$", "^sqlite3$"), builds=("tests_faults", "tests_torture"), **preset),)),
        Step(f"{name}-brokers", f"the components for {', '.join(each for _, each, *_ in brokers)}, with {title}", 13,
             (Ctest(("brokers", "sqlite3"), without=without, builds=tuple(f"tests_{broker}" for broker, *_ in brokers),
                    parallel=2, **preset),), needs=NETWORK_BROKER, repeats=True),
    ]


def broker(name, title, minutes, killing_minutes):
    needs = NETWORK_BROKER if name in ("kafka", "rocketmq") else ""  # the others are Debian packages
    steps = [Step(name, f"the component for {title} on a real broker, on SQLite", minutes,
                  (Ctest((name, "^(sqlite3|slow)$"), parallel=1),), needs=needs, repeats=True)]
    databases = ("sqlite3",) if name == "redis" else ("sqlite3", "mariadb", "postgresql")

    def killing(kind, proves, database, environment=()):
        servers = () if database == "sqlite3" else (database,)
        part = Ctest((name, database), without=("^unit$",), servers=servers, durable=True, restartable=bool(servers),
                     parallel=1, environment=kills(200) + environment)
        return Step(f"{name}-{kind}-{database}", f"{title}: 200 kills of {proves}, on {database}", killing_minutes, (part,),
                    needs=needs, repeats=True)

    for database in databases:
        alone = (("TXINBOX_TEST_EXCLUDE", CHAIN),) if name == "kafka" else ()
        steps.append(killing("kills", "consumers, brokers and database servers", database, alone))
        if name == "kafka":
            steps.append(killing("chain", "the parts of a chain of services", database, (("TXINBOX_TEST_CASE", CHAIN),)))
    if name in ("kafka", "rabbitmq"):  # RocketMQ is too slow for a step: its steps with kills send a million
        environment = (("TXINBOX_BROKER_MESSAGES", "10000000"), ("TXINBOX_TEST_CASE", f"{title}: the memory does not grow*"))
        steps.append(Step(f"{name}-memory", f"{title}: the memory of a consumer does not grow with ten million messages",
                          25, (Ctest((name, "sqlite3"), without=("^unit$",), parallel=1, environment=environment),),
                          needs=needs))
    return steps


def mutation_groups(root):
    return sorted(file.stem for file in (root / "tests" / "mutations").glob("*.toml"))


def mutations(group):
    if group == "opentelemetry":
        return Step(f"mutations-{group}", f"each mutation of {group} makes a test fail", 10,
                    (Script(("tests/tracing.sh", "--mutations")),), needs=NETWORK_BROKER)
    on_mysql = group == "procedures"
    servers = ("--mysql",) if on_mysql else ("--mariadb", "--postgresql")
    needs = NETWORK_BROKER if group in ("kafka", "sources") else NETWORK_MYSQL if on_mysql else ""
    return Step(f"mutations-{group}", f"each mutation of {group} makes a test fail", 20,
                (Script(("tests/servers.sh", *servers, "--", "tests/mutations.py", "--only", group)),), needs=needs)


def all_steps(root):
    """Every step, in the order of --all: the shortest and the most telling first."""
    steps = [
        Step("headers", "each public header compiles alone; wrong handlers do not compile, and the compiler says why", 1,
             (Ctest(("headers",)),)),
        Step("timed", "the cases that need real time, on SQLite, MariaDB and PostgreSQL", 5,
             (Ctest(("timed", "^(sqlite3|mariadb|postgresql)$"), servers=("mariadb", "postgresql"),
                    environment=LONG + (("TXINBOX_RELAY_KILLS", "4"),)),)),
        Step("orders", "deliveries keep their promises, whichever two things go wrong at the calls of their sessions", 7,
             (Ctest(("^orders$",)),)),
        Step("sim", "services in new simulated worlds in which much goes wrong", 35,
             (Ctest(("^sim_new$",), preset="release"),)),
        Step("servers", "the command, http and stopping on MariaDB and PostgreSQL; conformance on servers that wait for "
             "the disk", 6,
             (Ctest(("^(cli|http|stopping|conformance)$", "^(mariadb|postgresql)$"), servers=("mariadb", "postgresql"),
                    durable=True, builds=("tests_cli", "tests_http", "tests_stopping", "tests_conformance")),)),
        Step("mysql", "conformance, the command, http and stopping on MySQL, also a server of an unknown version", 4,
             (Ctest(("^(cli|http|stopping|conformance|examples)$", "mysql"), servers=("mysql",),
                    builds=("tests_cli", "tests_http", "tests_stopping", "tests_conformance", "tests_examples")),
              Ctest(("unknown_server",)), Script(("tests/get_newer.sh", "mysql", "--newer"))), needs=NETWORK_MYSQL),
        Step("oceanbase", "one node of OceanBase's engine, with faults at every packet, and killed", 20,
             (Script(("tests/oceanbase.sh", "build/dev"),
                     builds=("txinbox-cli", "txinbox-torture", "txinbox_conformance", "txinbox_faults")),),
             needs="root, for a network namespace; network, the first time: a package for Python of 54 MB",
             packages="cluster"),
        Step("logical-replication", "a service moves to another PostgreSQL database with its claims", 1,
             (Script(("tests/logical_replication.sh", "build/dev"), builds=("txinbox-cli",)),)),
        Step("vitess", "Vitess, plain and sharded, while vtgate and tablets are killed and a shard is split", 8,
             (Script(("tests/vitess.sh", "build/dev"), builds=("txinbox-cli", "txinbox-torture")),),
             needs="network, the first time: Go 1.26 and the modules of Vitess, which take seven minutes to build",
             packages="cluster"),
        Step("examples", "every example does what its comment says; services on other client libraries", 1,
             (Ctest(("^(examples|stopping|clients)$", "sqlite3"), builds=("tests_examples", "tests_stopping", "tests_clients")),
              Ctest(("^(examples|clients)$", "^(mariadb|postgresql)$"), servers=("mariadb", "postgresql"),
                    builds=("tests_examples", "tests_clients")))),
        Step("torture", "storms on SQLite; the checker finds what is broken on purpose", 1, (Ctest(("torture",)),)),
        Step("tls", "encrypted connections to MariaDB, PostgreSQL and MySQL", 1, (Ctest(("tls",)),),
             needs=NETWORK_MYSQL),
        Step("page", "the operators' page in Chromium, on SQLite, MariaDB and PostgreSQL", 3,
             (Script(("tests/page.sh", "build/dev"), builds=("txinbox-cli",)),), packages="page"),
        Step("site", "the documentation as a site: every link and anchor, a search, and no request to another host", 1,
             (Script(("tests/site.sh", "build/dev")),), packages="site"),
        Step("watching", "the alerts, and each expression of the dashboard, on a Prometheus that scrapes a service", 2,
             (Script(("tests/watching.sh", "build/dev"), builds=("txinbox_watched_service",)),), packages="watching"),
        Step("tracing", "the component opentelemetry; each of 1,000 orders through a chain of services is one trace", 5,
             (Script(("tests/tracing.sh",)),), needs=NETWORK_BROKER),
        Step("packages", "users' builds: find_package, pkg-config, add_subdirectory, FetchContent; static and shared", 8,
             (Ctest(("package",), builds=("txinbox_core",)),)),
        Step("abi", "the shared libraries export what the public headers declare; compatible with the last tag", 15,
             (Script(("tests/abi.sh", "build/dev")),), packages="abi"),
        Step("conan", "the Conan package: static, shared, without SOCI, with all components", 12,
             (Script(("tests/conan.sh", "build")),), needs="network, the first time: Conan, from Python's package index",
             packages="conan"),
        Step("debian", "Debian packages in fresh systems: build, lintian, install, upgrade, purge", 25,
             (Script(("tests/debian.sh", "build/debian")),), needs="root; network: two Debian systems of 1 GB",
             packages="debian"),
        Step("bench", "the benchmark's programs build, and count what they say", 1, (Ctest(("bench",)),)),
        Step("model", "the model of the lease protocol, and that it finds wrong protocols", 1, (Ctest(("model",), builds=("txinbox_core",)),)),
        Step("lint", "clang-tidy on every file", 9,
             (Script(("tests/lint.sh", "build/dev"), builds=("tests_gate",)),)),
        Step("clang", "clang 14 builds the gate's programs, without the precompiled header; unit, conformance and logic on "
             "SQLite", 15, (Ctest(("quick",), preset="clang"),)),
        Step("fuzz", "60 s of random inputs for each parser", 20, (Script(("tests/fuzz.sh", "--seconds", "60")),)),
        *(valgrind(database) for database in ("sqlite3", "mariadb", "postgresql")),
        Step("soak", "20 minutes in every way of consuming: memory, connections and statements do not grow", 27,
             (Script(("tests/soak.sh", "--minutes", "20")),)),
        Step("mixtures", "batches have the results of one by one, for 10,000 generated mixtures of messages on SQLite and "
             "1,000 on each server", 4,
             (Ctest(("mixtures", "sqlite3"), environment=(("TXINBOX_MIXTURES", "10000"),)),
              Ctest(("mixtures", "^(mariadb|postgresql|mysql)$"), servers=("mariadb", "postgresql", "mysql"),
                    environment=(("TXINBOX_MIXTURES", "1000"),))), needs=NETWORK_MYSQL),
        Step("storms", "storms on every database at the same time, with servers that are killed: nothing lost or doubled",
             3, (Script(("tests/storm.sh", "build/dev"), builds=("tests_storm",)),), needs=NETWORK_MYSQL),
        *(storm(database) for database in ("sqlite3", "mariadb", "mariadb-no-binlog", "postgresql", "mysql")),
        *(step for database in ("sqlite3", "mariadb", "postgresql", "mysql") for step in faults(database)),
        *sanitizer("asan", "AddressSanitizer and UndefinedBehaviorSanitizer"),
        # The command consumes on threads of the library, which the other tests cover. librdkafka starts its threads with
        # thrd_create, which ThreadSanitizer of clang 14 does not know: it ends the process. gRPC and its libraries are
        # built without ThreadSanitizer, so it reports how gRPC's threads pass data to each other.
        *sanitizer("tsan", "ThreadSanitizer", excluded=("cli", "kafka", "rocketmq")),
        *(step for each in BROKERS for step in broker(*each)),
        Step("relay-kills", "100 kills of the outbox's relays, on SQLite, MariaDB and PostgreSQL", 3,
             (Ctest(("relay_kills", "^(sqlite3|mariadb|postgresql)$"), servers=("mariadb", "postgresql"), parallel=1,
                    environment=(("TXINBOX_RELAY_KILLS", "100"),)),)),
        Step("failover", "primaries that are killed and replaced by a replica; PgBouncer", 8,
             (Ctest(("failover",), parallel=2),), repeats=True, packages="cluster"),
        Step("galera", "conformance on a node of a Galera cluster, and nodes that are killed and separated", 25,
             (Ctest(("galera",), builds=("tests_galera",), galera=True, parallel=2,
                    environment=LONG),), repeats=True,
             packages="cluster"),
        *(mutations(group) for group in mutation_groups(root)),
        Step("mutations-sim", "the simulator notices the mutations that say so", 25,
             (Script(("tests/mutations.py", "--simulate", "--preset", "release", "--jobs", "2", "--build-jobs", "1")),)),
    ]
    names = [step.name for step in steps]
    assert len(names) == len(set(names)), "two steps have the same name"
    return steps
