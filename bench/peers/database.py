"""The server's database: its tables, its accounts, and a session that holds locks."""

import os
import subprocess
from urllib.parse import urlsplit

NAME = "txinbox_peers"
ACCOUNTS = 60_000
# As account_rows in bench/database.hpp. The runs for the speed use these accounts, and the faults use the others.
SPEED_ACCOUNTS = 50_000

# The tables that the peers need and do not create by themselves, as their documentation describes them. Camel 4 cannot
# create its table on PostgreSQL, because its check for the table aborts the transaction.
TABLES = {
    "postgresql": """
CREATE TABLE received_messages (consumer_id varchar(1000), message_id varchar(1000), creation_time bigint,
  PRIMARY KEY (consumer_id, message_id));
CREATE TABLE INT_METADATA_STORE (METADATA_KEY varchar(255) NOT NULL, METADATA_VALUE varchar(4000),
  REGION varchar(100) NOT NULL, PRIMARY KEY (METADATA_KEY, REGION));
CREATE TABLE CAMEL_MESSAGEPROCESSED (processorName varchar(255), messageId varchar(100), createdAt timestamp,
  PRIMARY KEY (processorName, messageId));
""",
    "mariadb": """
CREATE TABLE received_messages (consumer_id varchar(255), message_id varchar(255), creation_time bigint,
  PRIMARY KEY (consumer_id, message_id));
CREATE TABLE INT_METADATA_STORE (METADATA_KEY varchar(255) NOT NULL, METADATA_VALUE varchar(4000),
  REGION varchar(100) NOT NULL, PRIMARY KEY (METADATA_KEY, REGION));
CREATE TABLE peer_heavy (i int PRIMARY KEY);
""",
}


class Database:
    """A new database on one of the private servers, whose URL is in the environment."""

    def __init__(self, kind):
        url = urlsplit(os.environ[f"TXINBOX_TEST_{kind.upper()}_URL"])
        self.kind, self.port, self.user, self.password = kind, url.port, url.username, url.password
        self.environment = {**os.environ, "PGPASSWORD": self.password, "MYSQL_PWD": self.password}
        server = "postgres" if kind == "postgresql" else "mysql"
        self.run(f"DROP DATABASE IF EXISTS {NAME};\nCREATE DATABASE {NAME}", server)
        sequence = f"generate_series(1, {ACCOUNTS}) i" if kind == "postgresql" else f"seq_1_to_{ACCOUNTS}"
        self.run("CREATE TABLE bench_account (id int PRIMARY KEY, n bigint NOT NULL);"
                 f"INSERT INTO bench_account SELECT {'i' if kind == 'postgresql' else 'seq'}, 0 FROM {sequence};"
                 "CREATE TABLE peer_duplicate (i int PRIMARY KEY); INSERT INTO peer_duplicate VALUES (1);"
                 + TABLES[kind])

    def client(self, name):
        """The command line of the database's client."""
        if self.kind == "postgresql":
            return ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port),
                    "-U", self.user, name]
        return ["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "-h127.0.0.1",
                f"-P{self.port}", f"-u{self.user}", name]

    def run(self, sql, name=NAME):
        """Runs statements, and returns the lines of their results."""
        done = subprocess.run(self.client(name), input=sql + ";\n", env=self.environment, text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self.kind}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def number(self, sql):
        return int(self.run(sql)[0])

    def accounts(self, first, count=1):
        """The values of `count` accounts."""
        return [int(n) for n in self.run(
            f"SELECT n FROM bench_account WHERE id BETWEEN {first} AND {first + count - 1} ORDER BY id")]

    def total(self):
        """The effects of all runs for the speed."""
        return self.number(f"SELECT sum(n) FROM bench_account WHERE id <= {SPEED_ACCOUNTS}")

    def version(self):
        return self.run("SHOW server_version" if self.kind == "postgresql" else "SELECT version()")[0]

    def adapter_environment(self, port=None):
        """The environment with which an adapter finds this database, directly or through a proxy on `port`."""
        port = port or self.port
        scheme = "postgresql" if self.kind == "postgresql" else "mysql"
        return {"TXINBOX_PEER_DATABASE": self.kind, "TXINBOX_PEER_PORT": str(port), "TXINBOX_PEER_USER": self.user,
                "TXINBOX_PEER_PASSWORD": self.password, "TXINBOX_PEER_NAME": NAME,
                "TXINBOX_PEER_URL": f"{scheme}://{self.user}:{self.password}@127.0.0.1:{port}/{NAME}"}


class Holder:
    """The other transaction of a deadlock. It makes the server choose the adapter's transaction as the victim."""

    def __init__(self, database, account):
        self.account = account
        self.client = subprocess.Popen(database.client(NAME), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, env=database.environment, text=True)
        if database.kind == "postgresql":
            prefer = "SET deadlock_timeout = '20s'"  # the adapter's session looks for deadlocks first
        else:
            prefer = "INSERT INTO peer_heavy SELECT seq FROM seq_1_to_2000"  # more changes than the adapter makes
        self.send(f"BEGIN;\n{prefer};\nUPDATE bench_account SET n = n WHERE id = {account + 1};\nSELECT 'held';\n")
        if self.client.stdout.readline().strip() != "held":
            raise RuntimeError("the holder has no lock")

    def send(self, text):
        self.client.stdin.write(text)
        self.client.stdin.flush()

    def close_the_circle(self):
        self.send(f"UPDATE bench_account SET n = n WHERE id = {self.account};\nROLLBACK;\n")
        self.client.stdin.close()

    def wait(self):
        if not self.client.stdin.closed:
            self.client.stdin.close()
        self.client.wait(60)
