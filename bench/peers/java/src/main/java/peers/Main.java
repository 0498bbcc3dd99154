package peers;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * The adapter of the peers on the JVM. It uses the line protocol of bench/peers/protocol.md.
 *
 * Usage: Main eventuate|spring|spring-plain|camel|camel-plain. The variables TXINBOX_PEER_* describe the database.
 */
public final class Main {
  private static final PrintStream OUT = System.out;

  static void say(String line) {
    synchronized (OUT) {
      OUT.println(line);
      OUT.flush();
    }
  }

  private static HikariDataSource connect(boolean postgresql) {
    String server = "127.0.0.1:" + System.getenv("TXINBOX_PEER_PORT") + "/" + System.getenv("TXINBOX_PEER_NAME");
    var config = new HikariConfig();
    // With these options, both drivers prepare the statements at the server.
    config.setJdbcUrl(postgresql ? "jdbc:postgresql://" + server
        : "jdbc:mariadb://" + server + "?sslMode=disable&useServerPrepStmts=true&cachePrepStmts=true&prepStmtCacheSize=250");
    config.setUsername(System.getenv("TXINBOX_PEER_USER"));
    config.setPassword(System.getenv("TXINBOX_PEER_PASSWORD"));
    // The rounds for the speed set the isolation level. The faults use the database's default.
    if (System.getenv("TXINBOX_PEER_READ_COMMITTED") != null) {
      config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
    }
    config.setMaximumPoolSize(16);
    config.setMinimumIdle(1);
    return new HikariDataSource(config);
  }

  private static String run(Candidate candidate, Work work, ExecutorService pool, String prefix, int first, int count,
      int workers) throws Exception {
    var next = new AtomicInteger();
    var acknowledged = new AtomicInteger();
    var times = new double[count];
    long runsBefore = work.runs.get();
    long start = System.nanoTime();
    Runnable loop = () -> {
      for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
        long begun = System.nanoTime();
        int number = first + i;
        try {
          candidate.deliver(prefix + "-" + String.format("%08d", number), 1 + number * 617 % 50_000, "ok");
          acknowledged.incrementAndGet();
        } catch (Exception e) {
          System.err.println(e);
        }
        times[i] = (System.nanoTime() - begun) / 1000.0;
      }
    };
    var others = new ArrayList<Future<?>>();
    for (int worker = 1; worker < workers; worker++) others.add(pool.submit(loop));
    loop.run();
    for (var each : others) each.get();
    double took = (System.nanoTime() - start) / 1000.0;
    Arrays.sort(times);
    return String.format(Locale.ROOT, "done %.1f %d %d %.1f %.1f", took, acknowledged.get(),
        work.runs.get() - runsBefore, times[count / 2], times[count * 99 / 100]);
  }

  private static String one(Candidate candidate, String key, int account, String fault) {
    try {
      candidate.deliver(key, account, fault);
      return "ack";
    } catch (Throwable e) {
      return "nack " + e.getClass().getSimpleName();
    }
  }

  public static void main(String[] arguments) throws Exception {
    boolean postgresql = System.getenv("TXINBOX_PEER_DATABASE").equals("postgresql");
    var source = connect(postgresql);
    var jdbc = new JdbcTemplate(source);
    var transactions = new DataSourceTransactionManager(source);
    var transaction = new TransactionTemplate(transactions);
    var work = new Work(jdbc, transaction);
    String name = arguments[0];
    Candidate candidate = switch (name) {
      case "eventuate" -> new Eventuate(jdbc, transaction, work, postgresql);
      case "spring", "spring-plain" -> new SpringIntegration(jdbc, transaction, work, name.equals("spring"));
      case "camel", "camel-plain" -> new Camel(source, transactions, work, name.equals("camel"));
      default -> throw new IllegalArgumentException(name);
    };
    var pool = Executors.newFixedThreadPool(16);
    say("ready");
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
      var f = line.split("\t");
      if (f[0].equals("run")) {
        say(run(candidate, work, pool, f[1], Integer.parseInt(f[2]), Integer.parseInt(f[3]), Integer.parseInt(f[4])));
      } else {
        pool.submit(() -> say("one " + f[1] + " " + one(candidate, f[2], Integer.parseInt(f[3]), f[4])));
      }
    }
    System.exit(0);
  }
}
